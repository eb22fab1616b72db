"""A cursor: executes one statement at a time and hands out its rows or its Arrow stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icesql.errors import InterfaceError, NotSupportedError, ProgrammingError
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa

    from icesql.context import Progress
    from icesql.dbapi.connection import Connection
    from icesql.engine.protocol import Result
    from icesql.scan.report import ScanReport
    from icesql.session import Outcome, Parameters

Row = tuple[Any, ...]
# (name, type_code, display_size, internal_size, precision, scale, null_ok)
ColumnDescription = tuple[str, str, None, None, int | None, int | None, bool]


class Cursor:
    """PEP 249 cursor. Rows are tuples of Python values; see the README for what each type becomes.

    A result is read once, either through ``fetch*`` or through ``arrow``, ``arrow_reader``, ``df``.
    One thread at a time; ``cancel`` may come from any thread.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.progress: Callable[[Progress], None] | None = None
        self._result: Result | None = None
        self._outcome: Outcome | None = None
        self._rowcount = -1
        self._closed = False
        self._cancel = threading.Event()
        self._started = self._ended = 0.0

    # ------------------------------------------------------------------ execute

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Run one statement; returns this cursor.

        ``parameters`` is a sequence for ``?`` and ``$1``, a mapping for ``:name`` and ``$name``.
        Errors of binding and planning are raised here, errors of single rows when they are fetched.
        """
        outcomes = self._outcomes(sql, parameters)
        self._take(next(outcomes, None))
        if self._outcome is None:
            raise ProgrammingError("there is no statement to execute")
        if next(outcomes, None) is not None:
            self._release()
            raise ProgrammingError(
                "execute() takes one statement; use execute_script() for several"
            )
        return self

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> None:
        """Refused, as PEP 249 leaves it for statements that give rows."""
        raise NotSupportedError(
            "executemany() is for writing; run execute() for each set of values"
        )

    def _outcomes(self, sql: str, parameters: Parameters) -> Iterator[Outcome]:
        self._open()
        self._release()
        self._cancel = threading.Event()
        self._started = time.perf_counter()
        return self.connection._session().run(
            sql, parameters, cancel=self._cancel, progress=self.progress
        )

    def _take(self, outcome: Outcome | None) -> None:
        self._outcome = outcome
        self._result = outcome.result if outcome is not None else None
        self._ended = time.perf_counter()

    # ------------------------------------------------------------------ rows

    def fetchone(self) -> Row | None:
        """The next row, None at the end."""
        rows = self._fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """At most ``size`` (``arraysize``) further rows; empty at the end."""
        return self._fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """All further rows."""
        return self._fetch(None)

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        row = self._rows().row()
        self._ended = time.perf_counter()
        if row is None:
            raise StopIteration
        return row

    def _fetch(self, count: int | None) -> list[Row]:
        if count is not None and count < 0:
            raise ProgrammingError(f"cannot fetch {count} rows")
        with self.connection._session().without_secrets():
            rows = self._rows().fetch(count)
        self._ended = time.perf_counter()
        return rows

    # ------------------------------------------------------------------ Arrow

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        with self.connection._session().without_secrets():
            table = self._rows().arrow_reader().read_all()
        self._ended = time.perf_counter()
        return table

    def arrow_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream of record batches; memory stays bounded."""
        return self._rows().arrow_reader()

    def df(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame. Raises MissingExtraError without pandas."""
        try:
            import pandas  # noqa: F401 - only to tell early and plainly that it is missing
        except ImportError as error:
            from icesql.errors import MissingExtraError

            raise MissingExtraError("pandas", extra="pandas") from error
        return self.arrow().to_pandas()

    # ------------------------------------------------------------------ facts

    @property
    def description(self) -> list[ColumnDescription] | None:
        """Name and type of each column, None without rows; the type code is its SQL name."""
        if self._result is None:
            return None
        return [
            (
                column.name,
                column.type.name,
                None,
                None,
                column.type.precision or None,
                column.type.scale if column.type.kind == "decimal" else None,
                True,
            )
            for column in self._result.columns
        ]

    @property
    def rowcount(self) -> int:
        """-1: how many rows a query gives is known when they are all fetched."""
        return self._rowcount

    @property
    def scan_reports(self) -> list[ScanReport]:
        """One report per table reference: what was planned, kept and skipped."""
        return list(self._outcome.reports) if self._outcome is not None else []

    @property
    def scan_groups(self) -> list[str]:
        """How each file is read: "plain", "plain + deletes" or "general"."""
        return list(self._result.groups) if self._result is not None else []

    @property
    def notes(self) -> list[str]:
        """What is worth knowing: the snapshots that times and refs resolved to, fallbacks."""
        if self._outcome is None:
            return []
        later = self._result.notes if self._result is not None else ()
        return [redact_urls(note) for note in (*self._outcome.notes, *later)]

    @property
    def elapsed(self) -> float:
        """Seconds from the start of ``execute`` to the last fetch."""
        return self._ended - self._started

    # ------------------------------------------------------------------ ends

    def cancel(self) -> None:
        """Stop what runs, from any thread: whoever waits gets QueryCancelledError."""
        self._cancel.set()
        if self._result is not None:
            self._result.cancel()

    def close(self) -> None:
        """Give everything back; the cursor cannot be used afterwards."""
        self._release()
        self._closed = True

    def _release(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result = self._outcome = None

    def _open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._session()

    def _rows(self) -> Result:
        self._open()
        if self._result is None:
            raise ProgrammingError("there is no result; execute a query first")
        return self._result

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Part of PEP 249; does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Part of PEP 249; does nothing."""

    def __del__(self) -> None:
        result = self.__dict__.get("_result")
        if result is not None:
            result.abandon()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
