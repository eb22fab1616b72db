"""The dialect: URLs, reflection, and what the database can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection, RowMapping, default, reflection

import icesql
from icesql.dbapi.cursor import forget_rows
from icesql.sqlalchemy.compiler import (
    IcesqlCompiler,
    IcesqlIdentifierPreparer,
    IcesqlTypeCompiler,
    literal,
)
from icesql.sqlalchemy.ddl import TABLE_OPTIONS, IcesqlDDLCompiler, is_left_out
from icesql.sqlalchemy.types import COLSPECS, type_of

# Arguments of `connect` that a URL may name; whatever else it names is a property of the catalog.
_ARGUMENTS = (
    "uri", "warehouse", "dialect", "timezone", "engine", "master", "remote", "locked",
    "tables_by_path", "catalogs", "files", "copy_to", "confine", "read_only", "service",
)  # fmt: skip
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_FLAGS = frozenset({"read_only", "service"})
_FLAG_OR_PLACES = frozenset({"locked", "tables_by_path", "files", "copy_to", "confine"})

# Superset still asks for SQLAlchemy 1.4, whose cache cannot read annotations that are postponed.
_IS_OLD = sqlalchemy.__version__.startswith("1.")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _cached(function: _Function) -> _Function:
    """Ask once for each inspector."""
    return function if _IS_OLD else reflection.cache(function)


class IcesqlExecutionContext(default.DefaultExecutionContext):
    """One execution of a statement."""

    def post_exec(self) -> None:
        """A change gives no rows here; its cursor's message and rowcount say what it did."""
        if self.compiled is not None and (self.isinsert or self.isupdate or self.isdelete):
            forget_rows(self.cursor)  # type: ignore[arg-type]


class IcesqlDialect(default.DefaultDialect):
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
    if _IS_OLD:
        type_compiler = IcesqlTypeCompiler
    preparer = IcesqlIdentifierPreparer
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_multivalues_insert = True
    supports_empty_insert = False
    supports_default_values = False
    supports_sequences = False
    supports_comments = True
    inline_comments = True
    supports_is_distinct_from = True
    supports_constraint_comments = False
    postfetch_lastrowid = False
    insert_returning = update_returning = delete_returning = False
    max_identifier_length = 255
    tuple_in_values = True

    def __init__(self, *, purge: bool = False, **kw: Any) -> None:
        """``purge``: DROP TABLE deletes the files of a table, too; see ``create_connect_args``."""
        super().__init__(**kw)
        self.purge = purge

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver."""
        return icesql

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override]
        """The driver, as SQLAlchemy 1.4 asks for it."""
        return icesql

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """What ``icesql.connect`` is called with for a URL.

        The host is the name of a configured catalog and the path then its namespace; without a
        host the path is the folder of a warehouse. ``?purge=true`` lets DROP TABLE delete files.
        Raises ArgumentError for what fits neither.
        """
        arguments: dict[str, Any] = {}
        properties: dict[str, str] = {}
        if url.username is not None or url.password is not None:
            raise exc.ArgumentError(
                "a URL of icesql takes no user or password; name what the catalog asks for in the "
                "query, such as ?token=… or ?credential=…, or in .pyiceberg.yaml"
            )
        for name, value in url.query.items():
            if not isinstance(value, str):
                raise exc.ArgumentError(f"{name} comes more than once in the URL")
            if name in _ARGUMENTS:
                arguments[name] = _argument(name, value)
            elif name == "purge":
                self.purge = _flag(name, value)
            elif name != "namespace":
                properties[name] = value
        if url.host:
            arguments["catalog"] = url.host if url.port is None else f"{url.host}:{url.port}"
        elif url.database:
            if "warehouse" in arguments:
                raise exc.ArgumentError("the URL names a warehouse in its path and in its query")
            arguments["warehouse"] = url.database
        if properties:
            arguments["properties"] = properties
        return (), arguments

    def on_connect_url(self, url: URL) -> Any:
        """USE of the namespace that a URL names, on each new connection."""
        place = url.query.get("namespace") or (url.database if url.host else None)
        if not place:
            return None
        parts = ".".join(f'"{part}"' for part in str(place).replace('"', '""').split("."))

        def use(connection: icesql.Connection) -> None:
            connection.execute(f"USE {parts}").close()

        return use

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in icesql.__version__.split(".")[:3] if part.isdigit())

    def _get_default_schema_name(self, connection: Connection) -> str | None:  # type: ignore[override]
        name: str | None = connection.exec_driver_sql("SELECT current_schema()").scalar()
        return name

    def get_isolation_level_values(self, dbapi_connection: Any) -> Sequence[Any]:
        """AUTOCOMMIT, with which each statement is done for good, and SNAPSHOT.

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

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        """AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """Whether a connection commits by itself."""
        return bool(dbapi_conn.autocommit)

    def do_execute(
        self, cursor: Any, statement: str, parameters: Any, context: Any | None = None
    ) -> None:
        """Run a statement; all of its tables as of ``execution_options(as_of=…)``, if given.

        ``as_of`` is a datetime or one of icesql's texts for a time. Tables with a time or a version
        of their own keep it.
        """
        if context is not None and is_left_out(context.compiled):
            return
        instant = None if context is None else context.execution_options.get("as_of")
        if instant is None:
            cursor.execute(statement, parameters)
            return
        text = instant if isinstance(instant, str) else instant.isoformat(" ")
        connection = cursor.connection
        before = connection.settings.snapshot_time
        connection.execute(f"SET SNAPSHOT TIME = {literal(text)}").close()
        try:
            cursor.execute(statement, parameters)
        finally:
            back = (
                "RESET SNAPSHOT TIME"
                if before is None
                else f"SET SNAPSHOT TIME = {literal(before)}"
            )
            connection.execute(back).close()

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """A connection that was closed, or made before a fork, is not used again."""
        return isinstance(e, icesql.InterfaceError) and "connection" in str(e)

    # ------------------------------------------------------------------ reflection

    @_cached
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """The namespaces of the catalog, inner ones with dots."""
        return [row[0] for row in connection.exec_driver_sql("SHOW SCHEMAS")]

    @_cached
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """The tables directly in a namespace.

        Without it those of the current one, or those outside of any.
        """
        schema = schema or self.default_schema_name
        if schema is None:
            names = [row[0] for row in connection.exec_driver_sql("SHOW TABLES")]
            return [name for name in names if "." not in name]
        place = self.identifier_preparer.quote_schema(schema)
        rows = connection.exec_driver_sql(f"SHOW TABLES FROM {place}")
        return [_last(row[0], schema) for row in rows]

    @_cached
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """The views of a namespace."""
        schema = schema or self.default_schema_name
        return [
            name for place, name, _ in self._views(connection) if schema is None or place == schema
        ]

    def _views(self, connection: Connection) -> Sequence[Any]:
        sql = "SELECT table_schema, table_name, view_definition FROM information_schema.views"
        try:
            return connection.exec_driver_sql(sql).all()
        except exc.DBAPIError as error:
            if isinstance(error.orig, icesql.NotSupportedError | icesql.ProgrammingError):
                return []
            raise

    @_cached
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """The query of a view. Raises NoSuchTableError."""
        for place, name, query in self._views(connection):
            if name == view_name and place == (schema or self.default_schema_name):
                return str(query)
        raise exc.NoSuchTableError(view_name)

    @_cached
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Whether there is a table or a view of that name."""
        try:
            self._described(connection, table_name, schema)
        except exc.NoSuchTableError:
            return False
        return True

    @_cached
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Name, type, nullability and comment of each column. Raises NoSuchTableError."""
        return [
            {
                "name": row["column"],
                "type": type_of(row["type"]),
                "nullable": bool(row["nullable"]),
                "default": None,
                "comment": row["comment"],
            }
            for row in self._described(connection, table_name, schema)
        ]

    @_cached
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The property ``comment`` of the table. Raises NoSuchTableError."""
        self._described(connection, table_name, schema)
        name = self._name(table_name, schema)
        rows = connection.exec_driver_sql(f"SHOW TBLPROPERTIES {name}")
        return {"text": dict(tuple(row) for row in rows).get("comment")}

    def _described(
        self, connection: Connection, table_name: str, schema: str | None
    ) -> Sequence[RowMapping]:
        name = self._name(table_name, schema)
        try:
            return connection.exec_driver_sql(f"DESCRIBE {name}").mappings().all()
        except exc.DBAPIError as error:
            if isinstance(error.orig, icesql.TableNotFoundError):
                raise exc.NoSuchTableError(table_name) from error
            raise

    def _name(self, table_name: str, schema: str | None) -> str:
        quoted = self.identifier_preparer.quote(table_name)
        schema = schema or self.default_schema_name
        if schema is None:
            return quoted
        return f"{self.identifier_preparer.quote_schema(schema)}.{quoted}"

    # Iceberg keeps none of these.

    def get_pk_constraint(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []

    def get_indexes(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []

    def get_unique_constraints(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []

    def get_check_constraints(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []

    def get_temp_table_names(self, *_: Any, **kw: Any) -> Any:
        """None that are seen by name."""
        return []

    def get_sequence_names(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []


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


def _last(name: str, schema: str) -> str:
    """The name of a table without its namespace, which may have the name of a catalog in front."""
    for length in (len(schema.split(".")), 1):
        parts = name.split(".", length)
        if len(parts) > length:
            return parts[-1]
    return name
