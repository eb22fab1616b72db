"""What one statement carries through every room: settings, cancellation, deadline, clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from icesql.config import Settings
from icesql.errors import QueryCancelledError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is; ``total`` is None while unknown."""

    stage: str
    done: int
    total: int | None = None
    bytes_done: int = 0


@dataclass(slots=True)
class QueryContext:
    """Made by ``session`` for one statement and handed down; nothing about a query is global.

    ``now`` is the instant that ``now()`` and relative times mean for the whole statement.
    ``deadline`` is on the ``time.monotonic`` clock, None without a limit.
    """

    settings: Settings = field(default_factory=Settings)
    cancel: threading.Event = field(default_factory=threading.Event)
    deadline: float | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    progress: Callable[[Progress], None] | None = None

    def check(self) -> None:
        """Raises QueryCancelledError once the query was cancelled or its time is over."""
        if self.cancel.is_set():
            raise QueryCancelledError("the query was cancelled")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise QueryCancelledError(
                "the query ran into its time limit "
                f"(query_timeout = {self.settings.query_timeout} s)"
            )

    def report(self, progress: Progress) -> None:
        """Pass progress to whoever asked for it."""
        if self.progress is not None:
            self.progress(progress)
