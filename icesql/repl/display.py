"""One result on the screen of the shell: its first rows, or all of it in a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

from msgspec import Struct, field

from icesql.dbapi.cursor import result_types
from icesql.frozen import Frozen
from icesql.repl.render import (
    ROWS_MEASURED,
    Counted,
    Style,
    as_written,
    is_document,
    table_room,
    write_rows,
)
from icesql.repl.results import show
from icesql.repl.terminal import Output, coloured, draws_lines

if TYPE_CHECKING:
    from icesql.dbapi.cursor import Cursor


def page(command: list[str], write: Callable[[IO[str]], int]) -> int:
    """Let ``write`` fill the pager; returns its result, or -1 if the pager was closed early.

    Ctrl-C goes to the pager meanwhile: it stops the rest of the output, never the shell. Raises
    OSError if the command cannot be started.
    """
    # Long lines are not folded, colours are shown, and the text stays when the pager is left.
    environment = {"LESS": "-SRX", **os.environ}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, env=environment, encoding="utf-8", errors="backslashreplace"
    )
    assert process.stdin is not None
    count = -1
    try:
        with suppress(BrokenPipeError, KeyboardInterrupt):
            count = write(process.stdin)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        while True:
            try:
                process.wait()
                break
            except KeyboardInterrupt:
                continue
    return count


_COUNTING_SECONDS: Final = 2.0
_WIDTH_OF_A_FILE: Final = 110
_LINES_BESIDE: Final = 6  # headings, rule, rows, scan, prompt


class Shown(Frozen):
    """Rows of a result; ``more`` of them were not shown, None if the pager was closed first."""

    count: int
    more: int = 0
    counted: bool = True


class Display(Struct):
    """How results are shown, and where; ``format`` is one of ``results.TEXT_FORMATS``."""

    out: TextIO
    format: str = "table"
    expanded: str = "off"
    paged: bool = True
    timing: bool = True
    most_rows: int = 40
    screen: Callable[[], os.terminal_size] = field(default=shutil.get_terminal_size)

    def show(self, cursor: Cursor, began: Callable[[], None], *, everything: bool = False) -> Shown:
        """Show the rows; ``began`` is called before the first one is written.

        On a terminal a result that is longer than the screen goes to the pager, and without one its
        first rows are shown, unless ``everything`` is set.
        """
        out = Output(self.out, self.format)
        form = "expanded" if self.format == "table" and self.expanded == "on" else self.format
        description = cursor.description or []
        laid_out = form in ("table", "expanded", "markdown") and not is_document(description)
        if not out.isatty() or not laid_out:
            return Shown(show(cursor, form, out, Style(), began))
        names = [column[0] for column in description]
        rows = as_written(chain(cursor.fetchmany(1), cursor), result_types(cursor))
        head = list(islice(rows, ROWS_MEASURED))
        began()
        screen, colour = self.screen(), coloured(self.out)
        fits = form != "table" or table_room(names, head[: self.most_rows], screen.columns)
        if not fits and self.expanded == "auto":
            form, fits = "expanded", True
        lines = len(head) * (len(names) + 1 if form == "expanded" else 1)
        long = lines + _LINES_BESIDE > screen.lines
        command = self._pager()
        if command and not everything and (long or not fits):
            return self._page(command, form, names, chain(head, rows), colour=colour)
        style = Style(screen.columns, colour)
        if everything or len(head) <= self.most_rows:
            return Shown(write_rows(out, form, names, chain(head, rows), style))
        write_rows(out, form, names, head[: self.most_rows], style)
        out.flush()
        more, counted = _rest(len(head) - self.most_rows, cursor)
        return Shown(self.most_rows + more, more, counted)

    def columns(self) -> int:
        """The greatest width of lines."""
        return self.screen().columns if self.out.isatty() else _WIDTH_OF_A_FILE

    def page_lines(self, lines: Sequence[str]) -> bool:
        """Show lines in the pager, if they are more than the screen has; False if they are not."""
        command = self._pager()
        if not command or len(lines) < self.screen().lines:
            return False
        self.out.flush()
        page(command, lambda pipe: pipe.write("\n".join(lines) + "\n"))
        return True

    def _pager(self) -> list[str]:
        """The words of ``$PAGER``, else ``less``; [] if no pager is wanted or there is none."""
        words: list[str] = []
        if self.paged and draws_lines(self.out):
            with suppress(ValueError):  # a quote that is not closed
                words = shlex.split(os.environ.get("PAGER", "less"))
        return words if words and shutil.which(words[0]) else []

    def _page(
        self,
        command: list[str],
        form: str,
        names: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        colour: bool,
    ) -> Shown:
        counted = Counted(rows)
        style = Style(None, colour)
        self.out.flush()
        ended = page(command, lambda pipe: write_rows(pipe, form, names, counted, style))
        return Shown(counted.count, counted=ended >= 0)


def _rest(seen: int, cursor: Cursor) -> tuple[int, bool]:
    """The number of rows with the ``seen`` ones, and whether it is exact: counting ends in time."""
    until = time.monotonic() + _COUNTING_SECONDS
    while rows := len(cursor.fetchmany(10_000)):
        seen += rows
        if time.monotonic() > until:
            cursor.close()
            return seen, False
    return seen, True
