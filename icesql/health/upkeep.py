"""Keep tables healthy: one table by its needs, and the tables of a catalog one by one.

The needs of a table are computed again before each action. Equality deletes are converted first,
since their effect decides which files are compacted; then come data files, position deletes,
manifests, and statistics of the result; snapshots expire after that, and orphans are removed last.
Each action is a separate, atomic statement: after a kill between two of them the table itself shows
what is left to do. A run over a catalog continues an earlier one where it ended.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from icesql.catalog.search_path import ListedTables
from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    NotSupportedError,
    QueryCancelledError,
    StorageError,
    TableNotFoundError,
)
from icesql.frozen import Frozen
from icesql.health.diagnose import error_text, examine_history
from icesql.health.examinations import flink_note
from icesql.health.facts import Facts, Perform, Performed, facts_of
from icesql.health.need import Need
from icesql.health.needs import ACTION, RUN, TARGET, need
from icesql.health.policy import Budget, Policy, TablePolicy, is_open
from icesql.health.runs import (
    ActionReport,
    ActionStatus,
    History,
    MaintenanceReport,
    TableReport,
    TableStatus,
)
from icesql.maintain.rewrite.plan import rewrite_options
from icesql.sql.table_name import name_text

_MOST_SHOWN: Final = 3
# How often to look again at a table that changes meanwhile.
_MOST_LOOKS: Final = 3
# Actions that create snapshots.
_COMMITTING: Final = frozenset({"convert", "compact", "deletes", "manifests"})
_FAILED_FILES: Final = "failed_data_files_count"


class Door(Frozen):
    """The services of the caller.

    ``load`` loads a table anew, ``perform`` runs a statement and adds the keys to the summaries of
    its snapshots, ``begin`` creates the context of a new query, with its own deadline. ``guard`` is
    a context manager that removes secrets from errors.
    """

    load: Callable[[Sequence[str]], Table]
    perform: Perform
    begin: Callable[[], QueryContext]
    guard: Callable[[], AbstractContextManager[None]] = nullcontext


class Run(Frozen):
    """``id`` is recorded in the summaries of snapshots. ``may_begin`` decides whether an action may
    start; ``spend`` gets the bytes that an action has rewritten; ``now`` is the time in UTC.
    """

    id: str
    now: Callable[[], datetime]
    may_begin: Callable[[], bool] = lambda: True
    spend: Callable[[int], None] = lambda size: None
    dry_run: bool = False


def keep_healthy(
    parts: Sequence[str], policy: TablePolicy, door: Door, run: Run, *, listed: bool = False
) -> TableReport:
    """Do what the table with this name needs. The report has any error of the table.

    ``listed``: the name came from a list of the catalog, so that a missing table was dropped.
    Raises QueryCancelledError if the run was cancelled.
    """
    started = time.monotonic()
    work = _Work(parts, policy, door, run)
    status: TableStatus
    try:
        with door.guard():
            status, note = work.do()
    except QueryCancelledError as error:
        if door.begin().cancel.is_set():
            raise
        status, note = "failed", str(error)  # the statement's own deadline
    except TableNotFoundError as error:
        status, note = ("gone", "dropped meanwhile") if listed or work.before else (
            "failed", str(error)
        )  # fmt: skip
    except Exception as error:  # no error of one table may stop the others
        status, note = "failed", error_text(error)
    return TableReport(
        name_text(parts),
        status,
        note,
        work.before,
        work.predicted,
        work.reached,
        time.monotonic() - started,
        tuple(work.reports),
    )


class _Work(Struct):
    parts: Sequence[str]
    policy: TablePolicy
    door: Door
    run: Run
    reports: list[ActionReport] = []
    before: dict[str, int] = {}
    predicted: dict[str, int] = {}
    reached: dict[str, int] = {}

    def do(self) -> tuple[TableStatus, str]:
        policy, run = self.policy, self.run
        if policy.skip:
            return "skipped", "the policy says so"
        if not is_open(policy.windows, run.now()):
            return "skipped", "outside of its windows"
        table = self.door.load(self.parts)
        damage, doubts = self._damage(table)
        for _ in range(_MOST_LOOKS):
            # Snapshots that others expired since the table was loaded are no damage.
            if not damage or _is_same(table, latest := self.door.load(self.parts)):
                break
            table = latest
            damage, doubts = self._damage(latest)
        shown = ", ".join((damage or doubts)[:_MOST_SHOWN])
        more = f"{shown}: icesql doctor {name_text(self.parts)} tells more"
        if damage:
            return "damaged", more
        doubt = f"doubtful, {more}" if doubts else ""
        facts = self._facts_now(table)
        self.before = facts.measures
        wanted: dict[str, Need | None] = {}
        for name in policy.actions:
            each = self._need(name, facts, commits=bool({*_COMMITTING} & {*self._planned(wanted)}))
            wanted[name] = each
            if each and not each.refusal:
                for measure, value in each.promise.items():
                    # Predictions of actions may overlap.
                    self.predicted[measure] = min(self.predicted.get(measure, value), value)
        if "expire" in self._planned(wanted) and (warning := flink_note(table.metadata)):
            doubt = "; ".join(filter(None, (doubt, warning)))
        if run.dry_run:
            self.reports += [self._report(each, "planned") for each in wanted.values() if each]
            planned = any(each.status == "planned" for each in self.reports)
            return ("planned" if planned else "nothing"), doubt
        status, note = self._carry_out(facts, wanted)
        return status, "; ".join(filter(None, (doubt, note)))

    @staticmethod
    def _planned(wanted: Mapping[str, Need | None]) -> list[str]:
        return [name for name, each in wanted.items() if each and not each.refusal]

    def _carry_out(self, facts: Facts, first: Mapping[str, Need | None]) -> tuple[TableStatus, str]:
        """Carry out the actions in order; after a change, each need is computed again."""
        changed, again, note = False, True, ""
        names = [*self.policy.actions]
        while names:
            name = names.pop(0)
            action = self._need(name, facts) if changed else first[name]
            if action is None:
                continue
            if action.refusal:
                self.reports.append(self._report(action, "refused"))
                continue
            windows = self.policy.windows
            if note or not (self.run.may_begin() and is_open(windows, self.run.now())):
                self.reports.append(self._report(action, "left"))
                continue
            report, after = self._perform(action, facts)
            self.reports.append(report)
            changed = True
            if after is None:
                note = report.note
                continue
            facts = after
            if name == "compact" and "data_files" not in action.promise and again:
                # Rows of older partition specs were moved to files of other partitions.
                names.insert(0, "compact")
                again = False
        self.reached = facts.measures if changed and not note else dict(self.before)
        if changed and not note:
            summaries = [each.summary for each in facts.metadata.snapshots.values()]
            made = sum(each.get(RUN) == self.run.id for each in summaries)
            # The prediction covers only the snapshots that existed before.
            self.reached["snapshots"] -= made
            self.reached["made_snapshots"] = made
        statuses = {each.status for each in self.reports}
        if "failed" in statuses:
            return "failed", note
        ends: tuple[TableStatus, ...] = ("partly", "left", "done")
        return next((each for each in ends if each in statuses), "nothing"), ""

    def _perform(self, action: Need, facts: Facts) -> tuple[ActionReport, Facts | None]:
        """Perform an action; return its report and the facts after it, None if work has to stop.

        After a conflict the action is planned once more: the other writer may have done it.
        """
        started = time.monotonic()
        for attempt in (1, 2):
            try:
                done = self.door.perform(action.call(self.parts), self._keys(action, facts))
            except (QueryCancelledError, TableNotFoundError):
                raise
            except CommitStateUnknownError as error:
                return self._report(action, "failed", started, note=str(error)), None
            except NotSupportedError as error:
                return self._report(Need(action.name, refusal=str(error)), "refused"), facts
            except Exception as error:
                # Files to read may also be missing, because another process was faster.
                is_conflict = isinstance(error, CommitConflictError)
                before, facts = facts, self._facts_now()
                if not is_conflict and _is_same(before.table, facts.table):
                    return self._report(action, "failed", started, note=error_text(error)), None
                again = self._need(action.name, facts)
                if again is None or again.refusal:
                    return self._report(action, "nothing", started, note="another did it"), facts
                if attempt == 2:
                    after = facts if is_conflict else None
                    return self._report(action, "failed", started, note=error_text(error)), after
                action = again
            else:
                break
        self.run.spend(action.bytes)
        facts = self._facts_now()
        counted = facts.measures
        status: ActionStatus = "done"
        if any(row.get(_FAILED_FILES) for row in done.rows):
            # Unless another process has done the rest.
            rest = self._need(action.name, facts)
            status = "partly" if rest and not rest.refusal else "done"
        report = self._report(
            action,
            status,
            started,
            note="; ".join(done.notes),
            reached={name: counted[name] for name in action.promise if name in counted}
            | _removed(action, done),
            snapshot_id=done.snapshot_id,
        )
        return report, facts

    def _keys(self, action: Need, facts: Facts) -> dict[str, str]:
        """The summary keys for an action's snapshot; later runs read the target size."""
        keys = {RUN: self.run.id, ACTION: action.name}
        if action.name == "compact":
            options = rewrite_options(action.arguments.get("options", {}), facts.metadata)
            keys[TARGET] = str(options.target_file_size_bytes)
        return keys

    def _damage(self, table: Table) -> tuple[list[str], list[str]]:
        """The kinds of damage in a table's history, certain and possible."""
        examined = examine_history(self.parts, table, self.door.begin())
        kinds: list[str] = [each.kind for each in examined.damages if each.certain]
        kinds += [each.name for each in examined.findings[len(examined.damages) :]]
        doubts = [each.kind for each in examined.damages if not each.certain]
        return list(dict.fromkeys(kinds)), list(dict.fromkeys(doubts))

    def _facts_now(self, table: Table | None = None) -> Facts:
        """The facts of the given table, or of a later version if its files are gone."""
        loaded = self.door.load(self.parts) if table is None else table
        for _ in range(_MOST_LOOKS):
            try:
                return self._facts(loaded)
            except StorageError:
                latest = self.door.load(self.parts)
                if _is_same(loaded, latest):
                    raise
                loaded = latest
        return self._facts(loaded)

    def _facts(self, table: Table) -> Facts:
        door, now = self.door, self._now_ms()
        return facts_of(self.parts, table, door.begin(), door.perform, self.policy, now)

    def _now_ms(self) -> int:
        return int(self.run.now().timestamp() * 1000)

    def _need(self, name: str, facts: Facts, *, commits: bool = False) -> Need | None:
        query = self.door.begin()
        return need(name, replace(facts, query=query, now_ms=self._now_ms(), commits=commits))

    def _report(
        self,
        action: Need,
        status: ActionStatus,
        started: float | None = None,
        *,
        note: str = "",
        reached: Mapping[str, int] | None = None,
        snapshot_id: int | None = None,
    ) -> ActionReport:
        if action.refusal:
            return ActionReport(action.name, "refused", note=action.refusal)
        return ActionReport(
            action.name,
            status,
            action.mend(self.parts).icesql,
            action.promise,
            reached or {},
            0.0 if started is None else time.monotonic() - started,
            note or action.reason,
            snapshot_id,
            action.bytes,
        )


def _is_same(first: Table, second: Table) -> bool:
    return first.metadata_location == second.metadata_location


def _removed(action: Need, done: Performed) -> dict[str, int]:
    """The number of files that an action deleted, from its result rows."""
    match action.name:
        case "orphans":
            return {"removed_orphans": len(done.rows)}
        case "expire":
            counts = [each for row in done.rows for each in row.values()]
            return {"removed_files": sum(each for each in counts if isinstance(each, int))}
        case _:
            return {}


# ------------------------------------------------------------------ the tables of a catalog


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
