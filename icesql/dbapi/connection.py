"""A connection: settings, tables and catalogs of one user, and cursors over them."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakSet

from icesql.access import Access, Place
from icesql.catalog.identifiers import listed_name
from icesql.config import Settings, unknown_variables
from icesql.dbapi.cursor import Cursor, Script, leave_rows, one_frame
from icesql.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from icesql.session.session import Session

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.context import Progress
    from icesql.health.finding import CatalogDiagnosis, Diagnosis
    from icesql.health.runs import MaintenanceReport, TableReport
    from icesql.session.outcome import Parameters
    from icesql.storage.cache import BoundedCache


# Closed at exit: DuckDB reports connections that are still open then on standard error.
_OPEN: WeakSet[Connection] = WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_OPEN):
        connection.close()
    if "icesql.commit.transaction" in sys.modules:
        from icesql.commit.transaction import roll_back_collected

        roll_back_collected()


def _leave_rows() -> None:
    for connection in list(_OPEN):
        for cursor in list(connection._cursors):
            leave_rows(cursor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_rows)


class Connection:
    """PEP 249 connection; made by ``icesql.connect``. Closing it closes its cursors.

    Threads may share it, each with a cursor of its own. It belongs to the process that opened it:
    in a fork of that process every use raises InterfaceError.
    """

    # PEP 249's optional extension: the exceptions as attributes.
    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cursors: WeakSet[Cursor] = WeakSet()
        # Cancellation events of the running rounds over tables, by doctor or maintenance.
        self._rounds: set[threading.Event] = set()
        _OPEN.add(self)
        # The progress callback of new cursors, or None. In a notebook it writes to the cell.
        self.progress: Callable[[Progress], None] | None = None
        if "IPython" in sys.modules:
            from icesql.dbapi.notebook import cell_progress

            self.progress = cell_progress()

    @property
    def _open(self) -> Session:
        """The session, unless it is closed. Raises InterfaceError."""
        self._session.check_open()
        return self._session

    def cursor(self) -> Cursor:
        """A new cursor."""
        cursor = Cursor(self, self._open)
        self._cursors.add(cursor)
        return cursor

    @one_frame
    def execute(
        self,
        sql: str,
        parameters: Parameters = None,
        *,
        tables: Mapping[str, Any] | None = None,
    ) -> Cursor:
        """A new cursor that has executed ``sql``; ``tables`` are as in ``Cursor.execute``."""
        return self.cursor().execute(sql, parameters, tables=tables)

    @one_frame
    def execute_script(self, sql: str, parameters: Parameters = None) -> Iterator[Cursor]:
        """Run statements separated by ``;``, each when its cursor is requested; one cursor each.

        Each cursor holds its own result, to be read at any time. The whole text is parsed first,
        in this call: an error of syntax in the last statement means that none ran.
        """
        script = Script(self._open, sql, parameters)
        return (self.cursor()._run(script, time.perf_counter()) for _ in range(len(script)))

    def register_table(self, name: str, path: str | os.PathLike[str]) -> None:
        """Register the table at ``path``, a table folder or a metadata file, as ``name``."""
        self._open.state.names.register(name, path)

    @one_frame
    def register(self, name: str, rows: Any) -> None:
        """Register rows that the program holds as the table ``name``, replacing earlier ones.

        ``rows`` is a pandas or Polars DataFrame, a LazyFrame, an Arrow table, batch, reader or
        dataset, a mapping of columns or anything with ``__arrow_c_stream__``. Arrow data is not
        copied, nor are numbers of pandas and numpy: after a change in place, register them again. A
        LazyFrame is run now; a reader is read to its end, within ``memory_limit``, and only once.
        Only the local engine reads them. With ``engine`` spark or auto, a DataFrame of Spark stays
        in Spark, which computes it for each statement that names it, and only Spark reads it.
        Raises ProgrammingError for a value that is not a table, UnsupportedSqlError for a type of
        Spark that tables lack, DataError, OperationalError.
        """
        from icesql.dbapi.registered import register

        register(self, self._open, name, rows)

    def unregister(self, name: str) -> None:
        """Remove registered rows. Raises ProgrammingError if none are registered as ``name``."""
        from icesql.dbapi.registered import unregister

        unregister(self._open, name)

    @property
    def catalog(self) -> Catalog | None:
        """The catalog this connection was opened with."""
        return self._open.state.names.catalog

    @property
    def settings(self) -> Settings:
        """The settings as they are now; ``SET`` changes them."""
        return self._open.state.settings

    @property
    def access(self) -> Access:
        """The limits of SQL on this connection, as given to ``connect``; they never change."""
        return self._session.state.access

    def tables(self, catalog: str | None = None) -> list[str]:
        """Names of all tables: those of the session, registered ones and those of the catalog.

        The session's tables are temporary tables and registered rows. A name is quoted if one of
        its parts contains a dot or begins with a quote.

        With ``catalog``, a name of ``catalogs()``: the tables of that catalog, prefixed with its
        name.
        """
        with self._open.without_secrets():
            state = self._session.state
            if catalog is not None:
                return state.names.tables_of(catalog)
            temporary = [each.name for each in state.temporary.all if each.kind == "table"]
            return [*(listed_name((name,)) for name in temporary), *state.names.table_names()]

    def catalogs(self) -> list[str]:
        """Names of the catalogs that SQL may use: this connection's own first, then configured."""
        return list(self._open.state.names.catalog_kinds())

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table, as ``DESCRIBE`` lists them.

        ``table`` is a name as in ``tables()``; quote parts that contain a dot with ``"``.
        """
        from icesql.query.show import column_names

        with self._open.without_secrets():
            return column_names(table, self._session.state)

    @property
    def autocommit(self) -> bool:
        """True (default) if each statement is committed when it ends.

        False: a change of a table begins a transaction, which ``commit`` applies as one commit.
        Setting it to True commits an open transaction.
        """
        return self._session.state.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        state = self._open.state
        if value:
            self.commit()
        state.autocommit = bool(value)

    @overload
    def doctor(self, table: str) -> Diagnosis: ...

    @overload
    def doctor(self, table: None = None, *, catalog: str | None = None) -> CatalogDiagnosis: ...

    def doctor(
        self, table: str | None = None, *, catalog: str | None = None
    ) -> Diagnosis | CatalogDiagnosis:
        """Examine the metadata of a table: findings with the statements that fix them.

        Delete files, and the key columns of data files, are read only if deleted rows may be back.
        ``table`` is a name in SQL. Without it, all tables of the connection's catalog, or of
        ``catalog``, a name of ``catalogs()``, are examined; the worst comes first, and a table that
        cannot be examined has an error instead of findings. ``query_timeout`` applies to each
        table. Nothing is changed. Raises TableNotFoundError; for a whole catalog ProgrammingError,
        CatalogError.
        """
        from icesql.dbapi.maintenance import diagnose_catalog, diagnose_table

        session = self._open
        if table is not None:
            if catalog is not None:
                raise ProgrammingError("doctor takes a table or a catalog, not both")
            return diagnose_table(session, table, self.progress)
        cancel = threading.Event()
        self._rounds.add(cancel)
        try:
            return diagnose_catalog(session, catalog, cancel, self.progress)
        finally:
            self._rounds.discard(cancel)

    def maintain(
        self,
        tables: str | Iterable[str] | None = None,
        *,
        policy: str | os.PathLike[str] | None = None,
        actions: Iterable[str] | None = None,
        budget: str | None = None,
        history: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        tell: Callable[[TableReport, int, int], None] | None = None,
    ) -> MaintenanceReport:
        """Maintain tables one after another: compact, convert deletes, expire snapshots and more.

        ``tables`` are names in SQL; None means every table of the catalog. ``policy`` is a TOML
        file with the actions for each table; ``actions`` overrides it. After ``budget``, such as
        "20min", "500GB" or both, no new actions are started. ``history`` is a file that records
        finished actions, so that a killed run can be continued. ``dry_run`` changes nothing.
        ``tell`` is called after each table with its report, its number and the count.

        An error of one table is in its report and does not stop the others. Raises
        ProgrammingError, AccessDeniedError, OperationalError for a history that cannot be written,
        CatalogError.
        """
        from icesql.dbapi.maintenance import maintain_tables

        session, cancel = self._open, threading.Event()
        self._rounds.add(cancel)
        try:
            return maintain_tables(
                session,
                [tables] if isinstance(tables, str) else tables,
                cancel,
                self.progress,
                policy=policy,
                actions=actions,
                budget=budget,
                history=history,
                dry_run=dry_run,
                tell=tell,
            )
        finally:
            self._rounds.discard(cancel)

    def commit(self) -> None:
        """Apply the open transaction in one commit; without one, do nothing.

        Raises CommitConflictError if another writer was first: nothing is applied then, and the
        transaction's files are deleted; and CommitStateUnknownError.
        """
        self._end(apply=True)

    def rollback(self) -> None:
        """Roll back the open transaction and delete its files; without one, do nothing."""
        self._end(apply=False)

    def _end(self, *, apply: bool) -> None:
        state = self._open.state
        if state.transaction is not None:
            from icesql.context import QueryContext
            from icesql.modify.run import end

            with self._session.without_secrets():
                end(state, QueryContext(settings=state.settings), apply=apply)

    def cancel(self) -> None:
        """Stop every statement of this connection, from any thread."""
        for cancel in list(self._rounds):
            cancel.set()
        for cursor in list(self._cursors):
            cursor.cancel()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._session.closed

    def close(self) -> None:
        """Close the cursors, engines and catalogs. Harmless when repeated, and in a fork.

        Threads that use a cursor of this connection get InterfaceError or QueryCancelledError.
        """
        if self._session.is_here:
            for cancel in list(self._rounds):
                cancel.set()
            for cursor in list(self._cursors):
                cursor.close()
        self._session.close()

    def __repr__(self) -> str:
        # Addresses and catalog options may contain secrets.
        return f"<icesql.Connection: {'closed' if self.closed else 'open'}>"

    def __reduce__(self) -> str:
        raise TypeError("a connection is of one process; open another where this one was sent")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            # A transaction belongs to the process that began it, not to a forked one.
            if kind is None and not self.closed and self._session.is_here:
                self.commit()
        finally:
            self.close()


def macros_of(connection: Connection) -> dict[str, str]:
    """The macros of the connection's session: name → parameters, such as ``(a, b)``."""
    macros = connection._session.state.macros
    return {name: each.signatures.replace(each.name, "") for name, each in macros.items()}


def _warn_of_unknown_variables() -> None:
    """Warn of misspelt ICESQL_ variables, which have no effect; never fails a connection.

    If warnings are errors (``-W error``), log them instead.
    """
    for unknown in unknown_variables(os.environ):
        import logging
        import warnings

        try:
            warnings.warn(unknown, Warning, stacklevel=3)
        except Warning:
            logging.getLogger("icesql").warning(unknown)


def connect(
    catalog: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    dialect: str | None = None,
    timezone: str | None = None,
    engine: str | None = None,
    spark: Any = None,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, Any] | None = None,
    locked: bool | str | Iterable[str] | None = None,
    tables_by_path: bool | Place | Iterable[Place] | None = None,
    catalogs: str | Iterable[str] | None = None,
    files: bool | Place | Iterable[Place] | None = None,
    copy_to: bool | Place | Iterable[Place] | None = None,
    confine: bool | Place | Iterable[Place] | None = None,
    read_only: bool | None = None,
    service: bool = False,
) -> Connection:
    """Open a connection; nothing is read before the first statement.

    ``catalog`` is a name of ``.pyiceberg.yaml``; ``warehouse`` a folder of tables or with a SQLite
    catalog; ``uri`` a catalog such as ``sqlite:///catalog.db``; without any, tables are read by
    ``iceberg_scan('path')`` and ``register_table``. ``properties`` are those of the catalog and its
    store, with PyIceberg's names; those of stores also open tables by path. ``dialect`` is
    sqlglot's name of the SQL dialect of statements (default: icesql's own, DuckDB's spelling).
    ``engine`` is local, spark or auto; ``spark`` is a SparkSession, else ``master`` or ``remote``
    is where one is started. ``settings`` are those of ``SET``; they override ``ICESQL_<NAME>``
    variables.

    The last arguments limit SQL, for connections that run untrusted SQL. No statement can change
    them; ``register_table`` and ``settings`` are only for the owner of the connection:

    - ``locked``: settings that SET and RESET cannot change; True: all.
    - ``tables_by_path``: whether ``iceberg_scan('path')`` is allowed (True), or the roots below
      which it is: folders, or prefixes such as s3://bucket/folder.
    - ``catalogs``: names of ``.pyiceberg.yaml`` that SQL may open (``other.ns.t``) besides this
      connection's own catalog; None: all.
    - ``files``: whether SQL may read local files (``read_csv`` …, ``'file.parquet'``), or the
      roots below which it may; ``copy_to`` whether COPY may write some. None is False.
    - ``confine``: roots that must contain a table's metadata file and every path in it; True: the
      folder of the table itself. None: all paths in the metadata are opened.
    - ``read_only``: refuses changes of tables. None: only if there is a limit on reading.
    - ``service``: arguments of this list that are not given (None) take their strictest value.

    Raises ProgrammingError for a setting, dialect or value that does not exist.
    """
    _warn_of_unknown_variables()
    access = Access.of(
        locked=locked,
        tables_by_path=tables_by_path,
        catalogs=catalogs,
        files=files,
        copy_to=copy_to,
        confine=confine,
        read_only=read_only,
        service=service,
    )
    chosen = Settings.from_environment(os.environ)
    for name, value in {"timezone": timezone, "engine": engine, **(settings or {})}.items():
        if value is not None:
            chosen = chosen.with_text(name, str(value))
    if dialect is not None:
        from icesql.sql.lexer import reading

        reading(dialect)  # rejects an unknown name here, not at the first statement

    def open_catalog(cache: BoundedCache) -> Catalog | None:
        if catalog is None and uri is None and warehouse is None:
            return None
        from icesql.catalog import open as door

        return door.open_catalog(
            catalog,
            uri=uri,
            warehouse=warehouse,
            properties=properties,
            cache=cache,
            confine=access.confine,
        )

    source = {"session": spark, "master": master, "remote": remote}
    given = {**(properties or {}), "uri": uri, "warehouse": warehouse, "catalog": catalog}
    session = Session(
        open_catalog, chosen, access=access, dialect=dialect, spark=source, properties=given
    )
    return Connection(session)
