"""Maintain the tables of a catalog one by one; continue an earlier run where it ended."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field

from icesql.catalog.search_path import ListedTables
from icesql.frozen import Frozen
from icesql.health.durations import Budget
from icesql.health.of_table import Door, Run, keep_healthy
from icesql.health.policy import Policy
from icesql.health.run_history import History
from icesql.health.run_report import MaintenanceReport, TableReport
from icesql.sql.table_name import name_text

# Gets the report of a table, its number, and the number of tables.
Tell = Callable[[TableReport, int, int], None]


class Request(Frozen):
    """``tables`` are names by their parts, None for the whole catalog, which ``place`` names.

    ``history`` is the path of the history file, None for none.
    """

    policy: Policy
    tables: Sequence[tuple[str, ...]] | None = None
    budget: Budget = Budget()
    dry_run: bool = False
    history: str | None = None
    place: str = ""

    @property
    def key(self) -> str:
        """Equal for requests of which one may continue the run of another."""
        chosen = "*" if self.tables is None else repr(sorted(self.tables))
        text = repr((self.place, chosen, self.policy.digest))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Spent(Struct):
    """Counts how much of a run's budget is used."""

    budget: Budget
    started: float = field(default_factory=time.monotonic)
    bytes: int = 0

    def spend(self, size: int) -> None:
        self.bytes += size

    def may_begin(self) -> bool:
        seconds, size = self.budget.seconds, self.budget.bytes
        if seconds is not None and time.monotonic() - self.started >= seconds:
            return False
        return size is None or self.bytes < size


def maintain(
    request: Request,
    door: Door,
    listed: Callable[[], ListedTables],
    tell: Tell | None = None,
) -> MaintenanceReport:
    """Maintain the tables. ``listed`` lists all of them; ``tell`` is called after each table.

    An error of one table does not stop the others. Raises QueryCancelledError, what listing the
    tables raises, and OperationalError for a history that cannot be written.
    """
    spent = _Spent(request.budget)
    given = request.tables
    listing = listed() if given is None else ListedTables("", tuple(dict.fromkeys(given)))
    names = listing.tables
    history = None
    if request.history is not None and not request.dry_run:
        history = History(request.history, request.key, _now())
    run = Run(
        os.urandom(8).hex() if history is None else history.run,
        _now, spent.may_begin, spent.spend, request.dry_run,
    )  # fmt: skip
    reports = [
        TableReport(name_text((*namespace, "*")), "failed", str(error))
        for namespace, error in listing.refused
    ]
    earlier: list[str] = []
    left: list[str] = []
    try:
        for number, parts in enumerate(names, 1):
            shown = name_text(parts)
            if history is not None and shown in history.finished:
                earlier.append(shown)
                continue
            if not spent.may_begin():
                left.append(shown)
                continue
            report = keep_healthy(
                parts, request.policy.of(parts), door, run, listed=request.tables is None
            )
            reports.append(report)
            if history is not None:
                history.add(report, _now())
            if tell is not None:
                tell(report, number, len(names))
        is_left = bool(left) or any(each.status == "left" for each in reports)
        if history is not None and not is_left:
            history.end(_now())
    finally:
        if history is not None:
            history.close()
    warnings = request.policy.unmatched(names) if request.tables is None else []
    return MaintenanceReport(
        run.id,
        tuple(reports),
        tuple(earlier),
        tuple(left),
        ("window" if spent.may_begin() else "budget") if is_left else "",
        tuple(warnings),
        request.dry_run,
    )


def _now() -> datetime:
    return datetime.now(UTC)
