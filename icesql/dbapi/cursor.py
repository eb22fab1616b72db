"""A cursor: executes one statement at a time and returns its rows or its Arrow stream."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from icesql.context import QueryContext
from icesql.errors import (
    NO_CATALOG,
    ColumnNotFoundError,
    Error,
    InterfaceError,
    InternalError,
    MissingExtraError,
    ProgrammingError,
    QueryCancelledError,
    TableNotFoundError,
    UnsupportedSqlError,
    Warning,
    mark_in,
    place,
    printable,
)
from icesql.session.outcome import own_error
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from icesql.context import Progress
    from icesql.dbapi.connection import Connection
    from icesql.dbapi.table_snapshot import TableSnapshot
    from icesql.engine.engines import Sink
    from icesql.engine.result import Result
    from icesql.engine.result_schema import ResultColumn, ResultType
    from icesql.file_format import FileFormat
    from icesql.modify.services import Modified
    from icesql.scan.report import ScanReport
    from icesql.session.outcome import Outcome, Parameters
    from icesql.session.session import Session

Row = tuple[Any, ...]
P = ParamSpec("P")
T = TypeVar("T")
_ALL: Final = "ICESQL_TRACEBACK"
# (name, type_code, display_size, internal_size, precision, scale, null_ok)
ColumnDescription = tuple[str, str, None, None, int | None, int | None, bool | None]


# Errors of SQL for people: the statement, a mark below it, and one frame of icesql.


def one_frame(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method: icesql's errors show only this frame, without their causes.

    With ``ICESQL_TRACEBACK=1`` all frames are shown, and always those of an internal error.
    """

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Error as error:
            if isinstance(error, InternalError) or os.environ.get(_ALL, "0") not in ("", "0"):
                raise
            raise error.with_traceback(None) from None

    return called


def mark(error: BaseException, sql: str) -> None:
    """Add a note to an error: the line of the statement, with a mark at the offset.

    ``sql`` is the statement without secrets.
    """
    if isinstance(error, Error) and not getattr(error, "__notes__", None):
        shown = mark_in(error, sql)
        if shown:
            error.add_note(shown)


def check_text(sql: object) -> None:
    """Raise ProgrammingError if a statement is not a text."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement is a text of SQL, not {type(sql).__name__}")


class Script:
    """The statements of one text, run one after the other; a later one sees an earlier SET.

    All are parsed before the first one runs, so a refused text changes nothing. Raises the errors
    of parsing; ``run`` raises InterfaceError when the session is closed.
    """

    def __init__(
        self,
        session: Session,
        sql: str,
        parameters: Parameters,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        check_text(sql)
        self._tables: Mapping[str, Any] = {}
        if tables:
            from icesql.dbapi.registered import tables_of

            self._tables = tables_of(session, tables)
        # The whole text.
        self.sql = sql
        self._session, self._position = session, 0
        self._begun: float | None = time.monotonic()
        try:
            self._statements = session.read(sql, parameters)
        except Exception as error:  # every error is raised again, after secrets are removed
            mark(error, sql)
            session.clean(error)
            own = own_error(error)
            if own is None:
                raise
            session.clean(own)
            raise own from error

    def __len__(self) -> int:
        return len(self._statements)

    def run(
        self,
        cancel: threading.Event | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Outcome:
        """The outcome of the next statement. Raises IndexError after the last.

        The caller adds positions to its errors, and removes secrets from them.
        """
        session = self._session
        session.check_open()
        statement = self._statements[self._position]
        self._position += 1
        # The time of parsing counts for the first statement.
        begun, self._begun = self._begun, None
        query = QueryContext.begin(session.state.settings, cancel, progress, self._tables, begun)
        return session.execute(statement, query)


class Cursor:
    """PEP 249 cursor. Rows are tuples of Python values; for types see the manual's Types.

    A result is read once: through ``fetch*``, or through ``arrow``, ``arrow_reader``,
    ``fetch_record_batches``, ``df``, ``pl`` or any consumer of the Arrow PyCapsule interface, such
    as ``pyarrow.table(cursor)`` and ``polars.DataFrame(cursor)``.
    Several threads may fetch: each row is returned to one of them. ``cancel`` and ``close`` may be
    called from any thread; callers that wait for rows get QueryCancelledError or InterfaceError.
    The resources of a result are released after its last row, after an error, and by ``close``.
    """

    def __init__(self, connection: Connection, session: Session) -> None:
        """Made by ``Connection.cursor``."""
        self.connection = connection
        self.arraysize = 1
        self.progress: Callable[[Progress], None] | None = connection.progress
        self._session = session
        self._result: Result | None = None
        self._outcome: Outcome | None = None
        self._ready: deque[Row] = deque()
        self._closed = False
        self._changed = -1  # the number of changed rows, after this is closed
        self._sql = ""
        self._query_id: str | None = None
        self._cancel = threading.Event()
        self._started = self._ended = 0.0
        # Held by ``execute``: one statement at a time. Fetching, cancelling, closing do not wait.
        self._running = threading.RLock()

    # ------------------------------------------------------------------ execute

    @one_frame
    def execute(
        self,
        sql: str,
        parameters: Parameters = None,
        *,
        tables: Mapping[str, Any] | None = None,
    ) -> Cursor:
        """Run one statement; returns this cursor.

        ``parameters`` is a sequence for ``?`` and ``$1``, a mapping for ``:name`` and ``$name``.
        ``tables`` are rows that only this statement reads by name: see ``Connection.register``.
        Errors of binding and planning are raised here, errors of single rows when they are fetched.
        A text refused before it runs (no statement or several, a syntax error, wrong parameters)
        changes nothing: the previous result can still be read.
        """
        with self._running:
            self._check_open()
            started = time.perf_counter()
            script = Script(self._session, sql, parameters, tables)
            if len(script) == 0:
                raise ProgrammingError("no statement to execute")
            if len(script) > 1:
                raise ProgrammingError(
                    f"execute() takes one statement, not {len(script)}; none of them ran; "
                    "use execute_script() for several"
                )
            self._run(script, started)
            if self._outcome is not None and self._outcome.notes == (NO_CATALOG,):
                # An empty list without a warning would look like an empty catalog.
                warnings.warn(NO_CATALOG, Warning, stacklevel=3)
        return self

    @one_frame
    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        """Run an INSERT with each set of values; all rows are one commit, or none is inserted.

        Raises NotSupportedError for any other statement.
        """
        with self._running:
            self._check_open()
            check_text(sql)
            from icesql.session.statements import insert_many

            session, started, before = self._session, time.perf_counter(), self._sql
            self._cancel, self._sql = threading.Event(), sql
            query = QueryContext.begin(session.state.settings, self._cancel, self.progress)
            try:
                with self._at_work():
                    outcome = insert_many(session, sql, parameters, query)
            except BaseException:
                self._sql = before  # the previous result can still be read
                raise
            self._release()
            self._started, self._outcome, self._result = started, outcome, outcome.result

    def _run(self, script: Script, started: float) -> Cursor:
        """Run the next statement of a script; returns this cursor."""
        self._release()
        self._cancel, self._started, self._sql = threading.Event(), started, script.sql
        self._query_id = os.urandom(16).hex()
        with self._at_work():
            outcome = script.run(self._cancel, self.progress)
        log_scans(self._query_id, outcome, time.perf_counter() - started)
        self._outcome, self._result = outcome, outcome.result
        if outcome.result is not None:
            self._ready = outcome.result.ready
        if self._closed or self._session.closed:
            self._release()
            self._check_open()
        return self

    # ------------------------------------------------------------------ rows

    def fetchone(self) -> Row | None:
        """The next row, None at the end."""
        try:
            return self._ready.popleft()
        except IndexError:
            rows = self._fetch(1)
        return rows[0] if rows else None

    @one_frame
    def fetchmany(self, size: int | None = None) -> list[Row]:
        """At most ``size`` (default ``arraysize``) further rows; empty at the end."""
        return self._fetch(self.arraysize if size is None else size)

    @one_frame
    def fetchall(self) -> list[Row]:
        """All further rows."""
        return self._fetch(None)

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        # Called for each row of a result, so it is short: `_ready` is empty after close and in a
        # forked process, where `_fetch` raises.
        try:
            return self._ready.popleft()
        except IndexError:
            rows = self._fetch(1)
        if not rows:
            raise StopIteration
        return rows[0]

    def _fetch(self, count: int | None) -> list[Row]:
        if count is not None and count < 0:
            raise ProgrammingError(f"cannot fetch {count} rows")
        with self._at_work():
            return self._rows().fetch(count)

    # ------------------------------------------------------------------ Arrow

    @one_frame
    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        with self._at_work():
            return self._rows().arrow_reader().read_all()

    fetch_arrow_table = arrow  # as other drivers call it

    @one_frame
    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream of record batches; memory stays bounded.

        The stream outlives this cursor and its connection, unless they are closed.
        """
        with self._at_work():
            return self._rows().arrow_reader()

    def fetch_record_batches(self, rows: int = 1_000_000) -> pa.RecordBatchReader:
        """All rows as a stream of record batches of ``rows`` rows each, the last one shorter.

        Raises ProgrammingError for ``rows`` below 1.
        """
        from icesql.dbapi.batches import in_batches_of

        if rows < 1:
            raise ProgrammingError(f"a record batch cannot have {rows} rows; give 1 or more")
        return in_batches_of(rows, self.arrow_reader())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows as a PyCapsule of an ArrowArrayStream, for any library that accepts one.

        Source: Arrow PyCapsule interface.
        """
        return self.arrow_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow schema of the result as a PyCapsule; no row is read."""
        from icesql.engine.result_schema import arrow_schema

        with self._at_work():
            return arrow_schema(self._rows().columns).__arrow_c_schema__()

    @one_frame
    def pl(self) -> polars.DataFrame:
        """All rows as a Polars DataFrame. Raises MissingExtraError without Polars."""
        from icesql.dbapi.frames import polars_frame

        return self._frame("polars", polars_frame)

    @one_frame
    def df(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame.

        Sums of integers are int64 if they fit. Raises MissingExtraError without pandas,
        DataError for values that pandas cannot represent.
        """
        from icesql.dbapi.frames import data_frame

        return self._frame("pandas", data_frame)

    def _frame(self, library: str, make: Callable[[pa.Table, Sequence[ResultColumn]], T]) -> T:
        try:
            importlib.import_module(library)  # before rows are read, which can be fetched otherwise
        except ImportError as error:
            raise MissingExtraError(library, extra=library) from error
        with self._at_work():
            result = self._rows()
            return make(result.arrow_reader().read_all(), result.columns)

    fetchdf = df  # as other drivers call it

    # ------------------------------------------------------------------ facts

    @property
    def description(self) -> list[ColumnDescription] | None:
        """Name and type of each column, None without rows; the type code is its SQL name.

        ``null_ok`` is False for a required column of a table that no outer join can fill with NULL,
        True for an optional column or one that a join may fill, None for expressions.
        """
        result, outcome = self._result, self._outcome
        if result is None or outcome is None:
            return None
        columns = result.columns
        nullable: list[bool | None] = [None] * len(columns)
        if outcome.bound is not None:
            from icesql.query.column_types import nullable_columns

            nullable = nullable_columns(outcome.bound, len(columns))
        return [
            (
                column.name,
                column.type.name,
                None,
                None,
                column.type.precision or None,
                column.type.scale if column.type.kind == "decimal" else None,
                null_ok,
            )
            for column, null_ok in zip(columns, nullable, strict=True)
        ]

    @property
    def rowcount(self) -> int:
        """The number of rows of the query, once all of them were fetched; -1 before that.

        For SHOW, DESCRIBE, EXPLAIN and answers from metadata alone it is known at once. For a
        statement that changes tables it is the number of rows added or removed, also after the
        cursor is closed. After a statement without rows it is -1.
        """
        if self._closed:
            return self._changed
        done, result = self._modified, self._result
        if done is not None and (done.rows is not None or result is None):
            return -1 if done.rows is None else done.rows
        count = result.row_count if result is not None else None
        return -1 if count is None else count

    @property
    def query_id(self) -> str | None:
        """The id of the last statement in icesql's log: 32 hexadecimal digits, new for each.

        None before the first statement.
        """
        return self._query_id

    @property
    def snapshots(self) -> dict[str, tuple[TableSnapshot, ...]]:
        """The snapshots that the statement read, by the name of the table.

        A table has several with time travel. With these ids in ``VERSION AS OF`` the statement
        returns the same rows again.
        """
        from icesql.dbapi.table_snapshot import snapshots_of

        return {} if self._outcome is None else snapshots_of(self._outcome.scans)

    @property
    def _modified(self) -> Modified | None:
        return None if self._outcome is None else self._outcome.modified

    @property
    def message(self) -> str:
        """The outcome of a statement that changes tables, as text; "" for all others."""
        return "" if (done := self._modified) is None else done.message

    @property
    def scan_reports(self) -> list[ScanReport]:
        """One report per table reference: the files and rows planned, kept and skipped."""
        return list(self._outcome.reports) if self._outcome is not None else []

    @property
    def scan_groups(self) -> list[str]:
        """Each file's reader: "duckdb", "duckdb + deletes" or "arrow" (icesql's own reader)."""
        return list(self._result.groups) if self._result is not None else []

    @property
    def notes(self) -> list[str]:
        """Notes for the user: the snapshots that times and refs resolved to, and fallbacks."""
        later = self._result.notes if self._result is not None else ()
        notes = (*self._outcome.notes, *later) if self._outcome is not None else ()
        return [printable(redact_urls(each), lines=True) for each in notes]

    @property
    def elapsed(self) -> float:
        """Seconds from the start of ``execute`` to the last fetch."""
        return self._ended - self._started

    # ------------------------------------------------------------------ ends

    def cancel(self) -> None:
        """Cancel the running statement, from any thread; its caller gets QueryCancelledError."""
        self._cancel.set()
        result = self._result
        if result is not None:
            result.cancel()

    @property
    def closed(self) -> bool:
        """Whether the cursor or its connection was closed."""
        return self._closed or self._session.closed

    def close(self) -> None:
        """Release all resources; the cursor cannot be used afterwards. Harmless when repeated."""
        if not self._closed:
            done = self._modified
            self._changed = -1 if done is None or done.rows is None else done.rows
        self._closed = True
        self._cancel.set()
        self._release()

    def _release(self) -> None:
        result, self._result, self._outcome = self._result, None, None
        self._ready = deque()
        if result is not None:
            result.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._session.check_open()

    def _at_work(self) -> _Work:
        """Context manager that turns failures caused by a concurrent close into InterfaceError.

        Its errors have their position in the SQL and contain no secret.
        """
        return _Work(self)

    def _rows(self) -> Result:
        self._check_open()
        result = self._result
        if result is None:
            raise ProgrammingError("no result; execute a query first")
        return result

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Part of PEP 249; does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Part of PEP 249; does nothing."""

    def __del__(self) -> None:
        result = self.__dict__.get("_result")
        if result is not None:
            result.abandon()

    def __repr__(self) -> str:
        if self.closed:
            return "<icesql.Cursor: closed>"
        result = self._result
        if result is None:
            return "<icesql.Cursor: no result>"
        columns = ", ".join(f"{each.name} {each.type.name}" for each in result.columns[:8])
        more = ", …" if len(result.columns) > 8 else ""
        return f"<icesql.Cursor: a result ({columns}{more})>"

    def _repr_html_(self) -> str | None:
        """HTML for a notebook: the first rows, which can still be fetched, and the scan."""
        from icesql.dbapi.notebook import cursor_html

        return cursor_html(self)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Work:
    """See ``Cursor._at_work``. A class, not a generator, because each statement enters it twice."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        cursor = self._cursor
        cursor._ended = time.perf_counter()
        clear = getattr(cursor.progress, "clear", None)
        if clear is not None:
            clear()
        if not isinstance(error, Exception):
            return
        own = own_error(error)
        shown = own or error
        if isinstance(shown, UnsupportedSqlError | ColumnNotFoundError | TableNotFoundError):
            from icesql.sql.syntax_errors import add_remedy

            add_remedy(shown, cursor._sql, own=not cursor._session.dialect)
        place(shown, cursor._sql)
        if isinstance(shown, TableNotFoundError) and shown.table.isidentifier():
            from icesql.dbapi.registered import name_rows

            name_rows(shown)
        mark(shown, cursor._sql)
        cursor._session.clean(shown)
        if own is not None:
            cursor._session.clean(error)
            raise own from error
        # An engine may raise any error if its result is closed meanwhile.
        is_known = isinstance(error, InterfaceError | QueryCancelledError)
        if not is_known and cursor.closed:
            raise InterfaceError("the cursor was closed while in use") from error


def result_types(cursor: Cursor) -> list[ResultType]:
    """The declared types of the columns of ``cursor``'s result."""
    return [] if cursor._result is None else [column.type for column in cursor._result.columns]


def leave_rows(cursor: Cursor) -> None:
    """Drop rows that were fetched before a fork: they belong to the parent process."""
    cursor._ready = deque()


def forget_rows(cursor: Cursor) -> None:
    """Drop the rows of ``cursor``'s result; the statement's outcome is still reported."""
    result, cursor._result, cursor._ready = cursor._result, None, deque()
    if result is not None:
        result.close()


def write_rows(cursor: Cursor, form: FileFormat, sink: Sink) -> int:
    """Write the rows of a result to ``sink``; return their number. Raises as ``fetchall``."""
    from icesql.engine.writing import write

    with cursor._at_work():
        session = cursor._session
        query = QueryContext.begin(session.state.settings, cursor._cancel)
        return write(cursor._rows(), session.engines, form, sink, query)


# Log the reads of each statement to the logger ``icesql`` at level INFO.


def log_scans(query_id: str, outcome: Outcome, seconds: float) -> None:
    """Log one line for each table of the statement, with its id and the seconds until it began.

    ``logging`` is not imported here: if the program did not import it, nothing is logged.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("icesql")
    if not logger.isEnabledFor(logging.INFO) or not outcome.plans:
        return
    from icesql.scan.report import scan_line
    from icesql.storage.credentials import redact_urls

    for report in outcome.reports:
        snapshot = report.snapshot_id if report.snapshot_id is not None else "none"
        line = redact_urls(scan_line(report))
        logger.info("query %s: %s · snapshot %s · %.3f s", query_id, line, snapshot, seconds)
