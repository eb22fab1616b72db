"""The dialect: URLs, capabilities, isolation levels, and execution of statements."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection, default

import icesql
from icesql.dbapi.cursor import forget_rows
from icesql.errors import similar_names
from icesql.quoting import literal
from icesql.sqlalchemy.compiler import (
    TABLE_OPTIONS,
    IcesqlCompiler,
    IcesqlDDLCompiler,
    IcesqlIdentifierPreparer,
    IcesqlTypeCompiler,
    is_left_out,
)
from icesql.sqlalchemy.reflected import COLSPECS, IS_OLD, IcesqlReflection
from icesql.storage.credentials import MASK, masked

# ------------------------------------------------------------------ URLs


# Arguments of `connect` that a URL may set; other names are properties of the catalog.
_ARGUMENTS: Final = (
    "uri", "warehouse", "dialect", "timezone", "engine", "master", "remote", "locked",
    "tables_by_path", "catalogs", "files", "copy_to", "confine", "read_only", "service",
)  # fmt: skip
# One-word properties of catalogs; their other properties contain a dot or a hyphen.
_PROPERTIES: Final = frozenset({"type", "token", "credential", "scope", "prefix", "auth", "name"})
_OWN: Final = ("purge", "namespace")
# Properties that a URL may contain at the place of user and password.
_SECRETS: Final = ("token", "credential")
_BOOLEANS: Final = {
    "true": True, "1": True, "yes": True, "false": False, "0": False, "no": False,
}  # fmt: skip
_FLAGS: Final = frozenset({"read_only", "service"})
_FLAG_OR_PLACES: Final = frozenset({"locked", "tables_by_path", "files", "copy_to", "confine"})


def options_of(url: URL) -> tuple[dict[str, Any], bool | None]:
    """The arguments of ``connect``, and whether DROP TABLE deletes files; None if not set.

    Raises ArgumentError for an invalid URL.
    """
    arguments: dict[str, Any] = {}
    properties: dict[str, str] = {}
    purge = None
    if url.username is not None or url.password is not None:
        if url.username not in _SECRETS or not url.password:
            raise exc.ArgumentError(
                "a URL of icesql takes no user or password but token:… and credential:…; name what "
                "else the catalog asks for in the query or in .pyiceberg.yaml"
            )
        properties[url.username] = url.password
    for name, value in url.query.items():
        if not isinstance(value, str) or name in properties:
            raise exc.ArgumentError(f"{name} comes more than once in the URL")
        if name in _ARGUMENTS:
            arguments[name] = _argument(name, value)
        elif name == "purge":
            purge = _flag(name, value)
        elif name != "namespace":
            _check_property(name)
            properties[name] = value
    if url.host:
        arguments["catalog"] = url.host if url.port is None else f"{url.host}:{url.port}"
    elif url.database:
        if "warehouse" in arguments:
            raise exc.ArgumentError("the URL names a warehouse in its path and in its query")
        arguments["warehouse"] = url.database
    if properties:
        arguments["properties"] = properties
    return arguments, purge


def _check_property(name: str) -> None:
    """Raise ArgumentError for a misspelt argument, so that a wrong read_only is not ignored."""
    if name in _PROPERTIES or "." in name:
        return
    near = similar_names(name.replace("-", "_"), (*_ARGUMENTS, *_OWN), 1)
    same = [each for each in (*_ARGUMENTS, *_OWN) if each == name.replace("-", "_").lower()]
    if found := [*same, *near]:
        raise exc.ArgumentError(f"the URL's {name} is unknown; did you mean {found[0]}?")


def _argument(name: str, value: str) -> Any:
    """An argument of ``connect`` from its text. Raises ArgumentError."""
    if name in _FLAGS:
        return _flag(name, value)
    flag = _BOOLEANS.get(value.lower())
    if name in _FLAG_OR_PLACES and flag is not None:
        return flag
    if name in _FLAG_OR_PLACES or name == "catalogs":
        return value.split(",")
    return value


def _flag(name: str, value: str) -> bool:
    flag = _BOOLEANS.get(value.lower())
    if flag is None:
        raise exc.ArgumentError(f"{name} in the URL is {value!r}; write true or false")
    return flag


class MaskedURL(URL):
    """A URL that hides secrets in its query string like its password."""

    __slots__ = ()

    @classmethod
    def of(cls, url: URL) -> URL:
        """The same URL, with unchanged parts, as a MaskedURL."""
        made: URL = tuple.__new__(cls, url)
        return made

    def render_as_string(self, hide_password: bool = True) -> str:
        """The URL as text, without secrets unless ``hide_password`` is False."""
        plain: URL = tuple.__new__(URL, self)
        if hide_password:
            plain = plain.set(query=_masked(self.query))
        text = plain.render_as_string(hide_password=hide_password)
        return text.replace("%2A%2A%2A", MASK) if hide_password else text


def _masked(query: Mapping[str, Any]) -> dict[str, Any]:
    shown = masked({name: value for name, value in query.items() if isinstance(value, str)})
    return {name: shown.get(name, MASK) for name in query}


# ------------------------------------------------------------------ the dialect


class IcesqlExecutionContext(default.DefaultExecutionContext):
    """One execution of a statement."""

    def post_exec(self) -> None:
        """Drop the rows of a change: message and rowcount of its cursor report the outcome."""
        if self.compiled is not None and (self.isinsert or self.isupdate or self.isdelete):
            forget_rows(self.cursor)  # type: ignore[arg-type]


class IcesqlDialect(IcesqlReflection):
    """``icesql://catalog/namespace``, ``icesql:///warehouse`` and ``icesql://?uri=…``."""

    name = "icesql"
    driver = "icesql"
    default_paramstyle = "qmark"
    statement_compiler = IcesqlCompiler
    ddl_compiler = IcesqlDDLCompiler
    execution_ctx_cls = IcesqlExecutionContext
    colspecs = COLSPECS
    construct_arguments = TABLE_OPTIONS  # type: ignore[assignment]
    div_is_floordiv = False
    cte_follows_insert = True
    type_compiler_cls = IcesqlTypeCompiler
    if IS_OLD:
        type_compiler = IcesqlTypeCompiler
    preparer = IcesqlIdentifierPreparer
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_sane_multi_rowcount = False
    supports_multivalues_insert = True
    supports_empty_insert = False
    supports_comments = True
    inline_comments = True
    postfetch_lastrowid = False
    max_identifier_length = 255
    tuple_in_values = True

    def __init__(
        self,
        *,
        purge: bool = False,
        json_serializer: Callable[[Any], str] | None = None,
        json_deserializer: Callable[[str], Any] | None = None,
        **kw: Any,
    ) -> None:
        """``purge``: DROP TABLE deletes the files of a table, too; see ``create_connect_args``.

        ``json_serializer`` and ``json_deserializer`` replace Python's json for JSON columns.
        """
        super().__init__(**kw)
        self._json_serializer, self._json_deserializer = json_serializer, json_deserializer
        self.purge = purge
        self._answered: WeakSet[icesql.Connection] = WeakSet()
        # Connections set to AUTOCOMMIT explicitly: for them rollback() does not warn.
        self._wanted: WeakSet[icesql.Connection] = WeakSet()
        # Statements that each connection has auto-committed since the last COMMIT or ROLLBACK.
        self._committed: WeakKeyDictionary[icesql.Connection, set[str]] = WeakKeyDictionary()

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver."""
        return icesql

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override]
        """The driver, for SQLAlchemy 1.4, which calls this method."""
        return icesql

    @classmethod
    def engine_created(cls, engine: Any) -> None:
        """Make the engine show its URL without the secrets in the query string."""
        engine.url = MaskedURL.of(engine.url)

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of ``icesql.connect`` for a URL.

        The host is the name of a configured catalog, and the path its namespace; without a host the
        path is a warehouse folder. ``?purge=true`` makes DROP TABLE delete files. ``token:…@`` and
        ``credential:…@``, at the place of user and password, set the properties of these names;
        SQLAlchemy hides the value as a password. Raises ArgumentError for any other user.
        """
        arguments, purge = options_of(url)
        if purge is not None:
            self.purge = purge
        return (), arguments

    def on_connect_url(self, url: URL) -> Any:
        """A function that sets the URL's namespace, as USE does, on each new connection."""
        place = url.query.get("namespace") or (url.database if url.host else None)
        if not place:
            return None
        parts = tuple(str(place).split("."))

        def use(connection: icesql.Connection) -> None:
            session = connection._session
            with session.without_secrets():
                session.state.names.place = session.state.names.find_place(parts)

        return use

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in icesql.__version__.split(".")[:3] if part.isdigit())

    def _get_default_schema_name(self, connection: Connection) -> str | None:  # type: ignore[override]
        name: str | None = connection.exec_driver_sql("SELECT current_schema()").scalar()
        return name

    def get_isolation_level_values(self, dbapi_connection: Any) -> Sequence[Any]:
        """AUTOCOMMIT, with which each statement is committed when it ends, and SNAPSHOT.

        With SNAPSHOT the first change of a table begins a transaction, which ``commit()`` applies
        as one commit of that table.
        """
        return ["AUTOCOMMIT", "SNAPSHOT"]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """See ``get_isolation_level_values``."""
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "SNAPSHOT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """See ``get_isolation_level_values``."""
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if dbapi_connection.autocommit:
            self._wanted.add(_own(dbapi_connection))

    def reset_isolation_level(self, dbapi_conn: Any) -> None:
        """Reset to the engine's level."""
        super().reset_isolation_level(dbapi_conn)  # type: ignore[no-untyped-call]
        if self._on_connect_isolation_level is None:
            self._wanted.discard(_own(dbapi_conn))

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        """AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """True if a connection commits automatically."""
        return bool(dbapi_conn.autocommit)

    def do_execute(
        self, cursor: Any, statement: str, parameters: Any, context: Any | None = None
    ) -> None:
        """Run a statement; its tables are read as of ``execution_options(as_of=…)``, if given.

        ``as_of`` is a datetime or a text for a time that icesql accepts. Tables with their own time
        or version keep it.
        """
        if context is not None and is_left_out(context.compiled):
            return
        instant = None if context is None else context.execution_options.get("as_of")
        if instant is None:
            self._execute(cursor, statement, parameters)
            return
        text = instant if isinstance(instant, str) else instant.isoformat(" ")
        connection = cursor.connection
        before = connection.settings.snapshot_time
        connection.execute(f"SET SNAPSHOT TIME = {literal(text)}").close()
        try:
            self._execute(cursor, statement, parameters)
        finally:
            back = (
                "RESET SNAPSHOT TIME"
                if before is None
                else f"SET SNAPSHOT TIME = {literal(before)}"
            )
            connection.execute(back).close()

    def _execute(self, cursor: Any, statement: str, parameters: Any) -> None:
        try:
            cursor.execute(statement, parameters)
        except icesql.NotSupportedError as error:
            if "PURGE" in str(error) and statement.lstrip().upper().startswith("DROP TABLE"):
                hint = "in SQLAlchemy ?purge=true of the URL, or Table(…, icesql_purge=True)"
                raise icesql.NotSupportedError(f"{error}; {hint}") from error
            raise
        self._note(cursor, statement)

    def do_executemany(
        self, cursor: Any, statement: str, parameters: Any, context: Any | None = None
    ) -> None:
        """Run an INSERT with several sets of values: one commit."""
        cursor.executemany(statement, parameters)
        self._note(cursor, statement)

    def _note(self, cursor: Any, statement: str) -> None:
        said = _CHANGE.match(statement)
        if said and cursor.rowcount > 0 and cursor.connection.autocommit:
            self._committed.setdefault(cursor.connection, set()).add(" ".join(said[0].split()))

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit the open transaction, if there is one."""
        self._committed.pop(_own(dbapi_connection), None)
        dbapi_connection.commit()

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back the open transaction, if any. Warns of changes that are already committed."""
        stay = self._committed.pop(_own(dbapi_connection), None)
        dbapi_connection.rollback()
        if stay and _own(dbapi_connection) not in self._wanted:
            warnings.warn(
                f"rollback() undoes nothing: {', '.join(sorted(stay))} was committed when "
                'it ran; isolation_level="SNAPSHOT" begins a transaction with the first change',
                icesql.Warning,
                stacklevel=2,
            )

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Check a connection; the first call also queries its catalog, which opens late."""
        cursor = dbapi_connection.cursor()
        try:
            connection = cursor.connection
            if connection not in self._answered:
                if connection.catalog is not None:
                    cursor.execute("SHOW SCHEMAS")
                self._answered.add(connection)
        finally:
            cursor.close()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """True for errors of a connection that was closed, or opened before a fork."""
        return isinstance(e, icesql.InterfaceError) and "connection" in str(e)


_CHANGE: Final = re.compile(
    r"\s*(?:INSERT\s+INTO|DELETE\s+FROM|UPDATE|MERGE\s+INTO)\s+\S+", re.IGNORECASE
)


def _own(dbapi_connection: Any) -> icesql.Connection:
    """The icesql connection in a connection of SQLAlchemy's pool."""
    own: icesql.Connection = getattr(dbapi_connection, "dbapi_connection", dbapi_connection)
    return own
