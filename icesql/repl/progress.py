"""One line on the terminal while a query runs: what it is doing and how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from shutil import get_terminal_size
from typing import Final, TextIO

from icesql.context import COMMITTING, NOT_COMMITTED, Progress
from icesql.errors import Error
from icesql.repl.render import seconds_text, shortened
from icesql.repl.terminal import spelled_out, styled
from icesql.scan.report import bytes_text

# The message for a stopped statement: its progress, and its remaining effects.

_CHANGES: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "REPLACE", "ALTER", "DROP", "TRUNCATE"}
)


def stopped_text(
    cause: str, progress: ProgressLine, script: str, number: int, dialect: str | None
) -> str:
    """The line for the person; ``number`` statements of the script had ended before this one.

    A commit that was sent and interrupted is an error of its own, which says so.
    """
    if "nothing was committed" in cause:
        return cause
    if progress.done:
        cause += f" after {progress.done}"
    if progress.committing:
        # The statement had ended, or the response to its commit was pending.
        return f"{cause}; it may be committed: look at the snapshots before you run it again"
    if not (progress.wrote or _changes(script, number, dialect)):
        return cause
    return f"{cause}; nothing {'of this statement ' if number else ''}was committed"


def _changes(script: str, number: int, dialect: str | None) -> bool:
    from icesql.sql.parse import first_tokens, split_statements

    try:
        _, text = split_statements(script, dialect=dialect)[number]
        return first_tokens(text, dialect)[0].word in _CHANGES
    except (Error, IndexError):  # it was stopped before it was read
        return False


_QUIET_SECONDS = 0.5  # an answer that comes at once needs no progress line
_BETWEEN_SECONDS = 0.1
_STUCK_SECONDS = 2.0
_TICK_SECONDS = 0.25
_WRITING: Final = "writing rows"
_TOGETHER: Final = frozenset({_WRITING, "running"})
_CLEAR: Final = "\r\x1b[2K"


class ProgressLine:
    """A progress callback that draws over its own line; ``clear`` erases the line.

    Rows may be fetched, drawn and reported in different threads.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.begin()

    def begin(self) -> None:
        """Reset the state for a new statement."""
        with self._lock:
            self._drawn, self._silent = False, False
            self._heard = self._clock()
            self._next = self._heard + _QUIET_SECONDS
            self._began: dict[str, float] = {}  # when each stage came first
            self._seen: dict[str, Progress] = {}
            self._last: Progress | None = None
            # The text of the last progress; "" before the first.
            self.done = ""

    @property
    def wrote(self) -> bool:
        """Whether rows were written, and no part of the work may be committed."""
        return _WRITING in self._seen and not any(
            each.startswith("rewriting") for each in self._seen
        )

    @property
    def committing(self) -> bool:
        """Whether a commit was sent, or is about to be, and may be applied."""
        return COMMITTING in self._seen

    def __call__(self, progress: Progress) -> None:
        """Draw ``progress``, unless the last drawing was a moment ago."""
        with self._lock:
            now = self._heard = self._clock()
            if progress.stage == NOT_COMMITTED:
                self._seen.pop(COMMITTING, None)
                if not progress.detail:
                    return
                self._next = now  # nothing else comes for a while
            self._seen[progress.stage] = progress
            if progress.stage in _TOGETHER and _WRITING in self._seen:
                progress = _together(self._seen)
            self._last = progress
            seconds = now - self._began.setdefault(progress.stage, now)
            self.done = progress_text(progress, seconds, ended=True)
            self._draw(progress_text(progress, seconds), now)

    def tick(self) -> None:
        """Show how long there was no progress, such as from a catalog, once that is long."""
        with self._lock:
            now = self._clock()
            silence = now - self._heard
            if self._last is None:
                if silence >= 2 * _QUIET_SECONDS:
                    self._draw(f"waiting {seconds_text(silence)} · Ctrl-C stops it", now)
            elif silence >= _STUCK_SECONDS:
                text = progress_text(self._last)
                self._draw(f"{text} · waiting {seconds_text(silence)}", now)

    def watch(self) -> None:
        """Tick in a thread until ``end``."""

        def ticking() -> None:
            while not self._ended.wait(_TICK_SECONDS):
                self.tick()

        threading.Thread(target=ticking, name="icesql-progress", daemon=True).start()

    def _draw(self, text: str, now: float) -> None:
        if self._silent or now < self._next:
            return
        self._next = now + _BETWEEN_SECONDS
        # A line that wraps could not be erased.
        text = shortened(spelled_out(text), max(get_terminal_size().columns - 1, 1))
        styled(self._out)(_CLEAR + text)
        self._out.flush()
        self._drawn = True

    def clear(self) -> None:
        """Erase the line, so that the next output starts at the margin."""
        with self._lock:
            self._take_away()

    def hush(self) -> None:
        """``clear``, and draw nothing until ``begin``: rows are shown, here or in a pager."""
        with self._lock:
            self._silent = True
            self._take_away()

    def end(self) -> None:
        """``hush``, and let the thread of ``watch`` end."""
        self._ended.set()
        self.hush()

    def _take_away(self) -> None:
        if self._drawn:
            styled(self._out)(_CLEAR)
            self._out.flush()
            self._drawn = False


def progress_text(progress: Progress, seconds: float = 0.0, *, ended: bool = False) -> str:
    """The words of the line: ``reading 3/10 · 12 MB of 40 MB · 6 MB/s · 5 s left``.

    ``seconds`` is how long the stage has run; rate and time left are shown after one second, but
    not for a stage that has ended.
    """
    if progress.stage == "running":  # what is counted are bytes alone
        parts = [f"running {seconds_text(seconds)}"]
    elif progress.stage == _WRITING:
        parts = [f"writing {progress.done:,} rows"]
        if seconds >= 1:
            parts.append(seconds_text(seconds))
    elif progress.stage == COMMITTING:
        parts = [COMMITTING + (f", attempt {progress.done}" if progress.done > 1 else "")]
    elif progress.stage == NOT_COMMITTED:
        parts = [f"not committed yet, attempt {progress.done:,}"]
    else:
        count = f"{progress.done:,}" + ("" if progress.total is None else f"/{progress.total:,}")
        parts = [f"{progress.stage} {count}"]
    if progress.detail:
        parts.append(progress.detail)
    if progress.bytes_done:
        of = f" of {bytes_text(progress.bytes_total)}" if progress.bytes_total else ""
        parts.append(bytes_text(progress.bytes_done) + of)
    if seconds >= 1 and not ended:
        if progress.bytes_done:
            parts.append(f"{bytes_text(int(progress.bytes_done / seconds))}/s")
        share = _share(progress)
        if 0 < share < 1:
            parts.append(f"{seconds_text(seconds / share - seconds)} left")
    return " · ".join(parts)


def _together(seen: Mapping[str, Progress]) -> Progress:
    """Rows are written while the query that gives them runs: both are one line."""
    running = seen.get("running", Progress("running", 0))
    written = seen[_WRITING].done
    return Progress(_WRITING, written, None, running.bytes_done, running.bytes_total)


def _share(progress: Progress) -> float:
    """The fraction of the stage that is done, 0 where it is unknown or too small to show."""
    if progress.bytes_total and progress.bytes_done:
        share = progress.bytes_done / progress.bytes_total
    elif progress.total:
        share = progress.done / progress.total
    else:
        return 0.0
    return share if 0.02 <= share <= 1 else 0.0
