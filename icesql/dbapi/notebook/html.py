"""A cursor as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icesql.config import time_zone
from icesql.dbapi.notebook.page import MOST_ROWS, page
from icesql.dbapi.notebook.preview_result import PreviewResult
from icesql.errors import InterfaceError
from icesql.scan.report_text import scan_line
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.dbapi.cursor import Cursor


def cursor_html(cursor: Cursor) -> str | None:
    """The open result of a cursor as HTML, None without one; errors of the query are raised.

    The rows stay to be read, in whatever way. Waits for the first of them.
    """
    result, outcome = cursor._result, cursor._outcome
    if cursor.closed or outcome is None or result is None:
        return None
    with cursor._at_work():
        rows: list[tuple[Any, ...]] | None
        try:
            rows = _next_rows(cursor)
        except InterfaceError:  # it is read as Arrow
            rows = None
    lines = [redact_urls(scan_line(report)) for report in cursor.scan_reports]
    if cursor.message:
        lines.append(cursor.message)
    columns = [(column.name, column.type.name) for column in result.columns]
    more = rows is not None and len(rows) > MOST_ROWS
    if rows is not None and not rows and result.row_count:
        rows = None
    return page(columns, rows if rows is None else rows[:MOST_ROWS], lines, more=more)


def _next_rows(cursor: Cursor) -> list[tuple[Any, ...]]:
    """The next rows, one more than are shown; they stay with the result."""
    result, outcome = cursor._rows(), cursor._outcome
    infinite = False
    if outcome is not None and outcome.bound is not None:
        from icesql.engine.result_rows import may_be_infinite

        infinite = may_be_infinite([each.type for each in result.columns], outcome.bound.tree)
    zone = time_zone(cursor._session.state.settings.timezone)
    try:
        shown = PreviewResult(result, zone, infinite=infinite, most=MOST_ROWS)
    except InterfaceError:  # fetched from already: what comes next is put back
        rows = result.fetch(MOST_ROWS + 1)
        result.ready.extendleft(reversed(rows))
        return rows
    cursor._result, cursor._ready = shown, shown.ready
    return shown.first
