"""Shows the progress of a statement in its notebook cell."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from icesql.context import Progress
from icesql.dbapi.notebook.page import said
from icesql.scan.report_text import bytes_text

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
