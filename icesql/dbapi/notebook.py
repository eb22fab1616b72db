"""Output for notebooks as HTML: the first rows of a cursor, and the progress of a statement.

All text from tables and queries, including column names, is escaped. IPython is imported only where
it runs already.
"""

from __future__ import annotations

import html
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from icesql.config import time_zone
from icesql.context import Progress
from icesql.engine.result import ResultOver
from icesql.engine.values import text_of
from icesql.errors import InterfaceError
from icesql.scan.report import bytes_text, scan_line
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.dbapi.cursor import Cursor
    from icesql.engine.result import Result


# ------------------------------------------------------------------ the page


MOST_ROWS: Final = 20
_MOST_COLUMNS: Final = 40
_LONGEST: Final = 300
_NUMBERS: Final = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "ubigint", "hugeint", "float", "double", "decimal"}
)


def page(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]] | None,
    lines: Sequence[str],
) -> str:
    """The HTML; ``columns`` are names and types, ``rows`` is None if they were fetched already.

    At most ``MOST_ROWS`` rows are shown. ``lines`` are shown below the table.
    """
    shown = columns[:_MOST_COLUMNS]
    aligned = [" style='text-align:right'" if _is_number(kind) else "" for _, kind in shown]
    heads = "".join(
        f"<th{side}>{said(name)}<br><small style='font-weight:normal'>{said(kind)}</small></th>"
        for (name, kind), side in zip(shown, aligned, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{side}>{_cell(value)}</td>" for value, side in zip(row, aligned, strict=False)
        )
        + "</tr>"
        for row in (rows or ())[:MOST_ROWS]
    )
    if rows is None:
        facts = ["its rows were fetched already"]
    elif len(rows) > MOST_ROWS:
        facts = [f"the first {MOST_ROWS} rows; there are more"]
    else:
        facts = ["1 row" if len(rows) == 1 else f"{len(rows)} rows"]
    if len(columns) > len(shown):
        facts.append(f"{len(columns) - len(shown)} more columns")
    notes = "".join(f"<br>{said(line)}" for line in lines)
    return (
        f"<div class='icesql'><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"<small>{' · '.join(facts)}{notes}</small></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<em style='opacity:.5'>NULL</em>"
    if isinstance(value, bytes | bytearray) and len(value) > _LONGEST:
        value = value[:_LONGEST]  # its text is twice as long, and truncated below
    return said(text_of(value))


def said(text: str) -> str:
    """A text truncated and escaped for HTML; invisible characters become ``\\u`` escapes."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return html.escape("".join(map(_visible, cut)))


def _visible(sign: str) -> str:
    """Escape characters that are invisible or change the direction of text."""
    if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"):
        return sign
    return f"\\u{ord(sign):04x}"


def _is_number(kind: str) -> bool:
    return kind.partition("(")[0] in _NUMBERS


# ------------------------------------------------------------------ the result of a cursor


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
        from icesql.engine.arrow_values import rows_of

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


# ------------------------------------------------------------------ progress


_QUIET_SECONDS = 0.5  # fast statements show no progress
_BETWEEN_SECONDS = 0.2


def cell_progress() -> CellProgress | None:
    """A progress callback for a cell; None outside of a notebook."""
    module: Any = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    # Only a notebook's IPython has a kernel; IPython in a terminal has no cells.
    return None if getattr(shell, "kernel", None) is None else CellProgress(_display)


class CellProgress:
    """A progress callback that shows HTML after a short delay; ``clear`` removes it."""

    def __init__(
        self,
        display: Callable[[str], Callable[[str], None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``display`` shows HTML and returns a function that replaces it."""
        self._display, self._clock = display, clock
        self._update: Callable[[str], None] | None = None
        self._next: float | None = None
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Show ``progress``, unless the last update is too recent."""
        now = self._clock()
        if self._next is None:
            self._next = now + _QUIET_SECONDS
        if now < self._next or not self._lock.acquire(blocking=False):
            return
        try:
            self._next = now + _BETWEEN_SECONDS
            if self._update is None:
                self._update = self._display(progress_html(progress))
            else:
                self._update(progress_html(progress))
        finally:
            self._lock.release()

    def clear(self) -> None:
        """Stop showing progress: the statement is done, or waits for a fetch."""
        with self._lock:
            update, self._update, self._next = self._update, None, None
            if update is not None:
                update("")


def progress_html(progress: Progress) -> str:
    """A progress bar, if the total is known, and the progress of the stage as text."""
    words = progress.stage
    if progress.stage != "running":
        words += f" {progress.done:,}" + (f"/{progress.total:,}" if progress.total else "")
    if progress.detail:
        words += f" · {progress.detail}"
    if progress.bytes_done:
        of = f" of {bytes_text(progress.bytes_total)}" if progress.bytes_total else ""
        words += f" · {bytes_text(progress.bytes_done)}{of}"
    done, total = (
        (progress.bytes_done, progress.bytes_total)
        if progress.bytes_total
        else (progress.done, progress.total)
    )
    bar = f"<progress value='{min(done, total)}' max='{total}'></progress> " if total else ""
    return f"<div class='icesql'>{bar}<small>{said(words)}</small></div>"


def _display(page: str) -> Callable[[str], None]:
    from IPython.display import HTML, display

    handle = display(HTML(page), display_id=True)
    return lambda text: handle.update(HTML(text))
