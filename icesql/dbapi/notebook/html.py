"""The HTML of a cursor in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from icesql.config import time_zone
from icesql.dbapi.notebook.page import MOST_ROWS, page
from icesql.engine.static import ResultOver
from icesql.errors import InterfaceError
from icesql.scan.report_text import scan_line
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.dbapi.cursor import Cursor
    from icesql.engine.result_reader import Result

# A result whose first rows are previewed and can still be fetched.

Row = tuple[Any, ...]


class PreviewResult(ResultOver):
    """A ``Result`` over another one that has not been read yet.

    The inner result is read as Arrow, so after a preview this one can still return Arrow or rows.
    """

    def __init__(self, result: Result, zone: tzinfo, *, infinite: bool, most: int) -> None:
        """``most``: the number of rows to show. Raises as reading the result."""
        reader: pa.RecordBatchReader = result.arrow_reader()
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in reader:
            held.append(batch)
            count += batch.num_rows
            if count > most:
                break
        super().__init__(result)
        self._zone, self._infinite = zone, infinite
        self._unread: Iterator[pa.RecordBatch] = chain(held, reader)
        first = (row for batch in held for rows in self._rows(batch) for row in rows)
        self.first = list(islice(first, most + 1))

    def _chunks(self) -> Iterator[list[Row]]:
        for batch in self._unread:
            yield from self._rows(batch)
        self.notes = self._result.notes

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._unread

    def _finish(self) -> None:
        self._unread = iter(())
        super()._finish()

    def _rows(self, batch: pa.RecordBatch) -> Iterator[list[Row]]:
        from icesql.engine.arrow.values import rows_of

        return rows_of(batch, self.columns, self._zone, infinite=self._infinite)


def cursor_html(cursor: Cursor) -> str | None:
    """The open result of a cursor as HTML; None without one. Raises errors of the query.

    Waits for the first rows. All rows can still be read afterwards, in any way.
    """
    result, outcome = cursor._result, cursor._outcome
    if cursor.closed or outcome is None or result is None:
        return None
    with cursor._at_work():
        rows: list[tuple[Any, ...]] | None
        try:
            rows = _next_rows(cursor)
        except InterfaceError:  # the result is being read as Arrow
            rows = None
    lines = [redact_urls(scan_line(report)) for report in cursor.scan_reports]
    if cursor.message:
        lines.append(cursor.message)
    columns = [(column.name, column.type.name) for column in result.columns]
    if not rows and result.row_count:
        rows = None
    return page(columns, rows, lines)


def _next_rows(cursor: Cursor) -> list[tuple[Any, ...]]:
    """The next rows, one more than are shown; they can still be fetched."""
    result, outcome = cursor._rows(), cursor._outcome
    infinite = False
    if outcome is not None and outcome.bound is not None:
        from icesql.engine.result_rows import may_be_infinite

        infinite = may_be_infinite([each.type for each in result.columns], outcome.bound.tree)
    zone = time_zone(cursor._session.state.settings.timezone)
    try:
        shown = PreviewResult(result, zone, infinite=infinite, most=MOST_ROWS)
    except InterfaceError:  # rows were fetched already: fetch the next ones and put them back
        rows = result.fetch(MOST_ROWS + 1)
        result.ready.extendleft(reversed(rows))
        return rows
    cursor._result, cursor._ready = shown, shown.ready
    return shown.first
