"""How far a query of this process is: what it has read of what it planned to read.

DuckDB keeps an estimate of its own only where its configuration is open, and icesql locks it.
"""

from __future__ import annotations

from collections.abc import Callable

from icesql.context import Progress


def reading_progress(planned_bytes: int) -> Callable[[], Progress]:
    """A function that says how far the process is since now; callable from any thread.

    The bytes are those of all reads of the process, from disk or the system's memory, as Linux
    counts them, and 0 elsewhere; never more than ``planned_bytes``.
    """
    before = _bytes_read()

    def progress() -> Progress:
        done = min(max(_bytes_read() - before, 0), planned_bytes)
        return Progress("running", 0, bytes_done=done, bytes_total=planned_bytes)

    return progress


def _bytes_read() -> int:
    try:
        with open("/proc/self/io", "rb") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
