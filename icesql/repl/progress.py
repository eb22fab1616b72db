"""One line on the terminal while a query runs: what it is doing and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from icesql.context import Progress
from icesql.repl.terminal import spelled_out, styled
from icesql.scan.report_text import bytes_text

_QUIET_SECONDS = 0.5  # an answer that comes at once needs no progress line
_BETWEEN_SECONDS = 0.1


class ProgressLine:
    """A progress callback that draws over its own line; ``clear`` takes the line away."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._next = clock() + _QUIET_SECONDS
        self._drawn = False

    def __call__(self, progress: Progress) -> None:
        """Draw ``progress``, unless the last drawing was a moment ago."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _BETWEEN_SECONDS
        styled(self._out)(f"\r\x1b[2K{spelled_out(progress_text(progress))}")
        self._out.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the line away, so that what follows starts at the margin."""
        if self._drawn:
            styled(self._out)("\r\x1b[2K")
            self._out.flush()
            self._drawn = False


def progress_text(progress: Progress) -> str:
    """The words of the line: ``reading 3/10 · 12 MB``."""
    count = f"{progress.done:,}" + ("" if progress.total is None else f"/{progress.total:,}")
    size = f" · {bytes_text(progress.bytes_done)}" if progress.bytes_done else ""
    return f"{progress.stage} {count}{size}"
