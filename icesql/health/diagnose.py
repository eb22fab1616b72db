"""Examine a table and its history, or all tables of a catalog: facts in, findings out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.attempts import now_ms
from icesql.commit.file_changes import file_key
from icesql.context import Progress, QueryContext
from icesql.errors import Error, InternalError, ProgrammingError, plural
from icesql.frozen import Frozen
from icesql.health.damage import Damage, damages
from icesql.health.examinations import (
    delete_files,
    flink_streams,
    metadata_files,
    metadata_size,
    missing_bounds,
    missing_nan_counts,
    orphans,
    overlap,
    partition_names,
    skew,
    small_files,
    snapshots,
)
from icesql.health.facts import Facts, Perform, Sizes, facts_of
from icesql.health.finding import (
    WEIGHTS,
    Diagnosis,
    Finding,
    Gain,
    Statement,
    Weight,
    call,
    constant,
    replace_branch,
)
from icesql.health.history import History
from icesql.health.needs import manifests
from icesql.health.policy import TablePolicy
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.maintain.expire import plan_expiry
from icesql.maintain.rewrite.plan import RewritePlan
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.tasks import distinct_deletes
from icesql.sql.table_name import name_text

# ------------------------------------------------------------------ predicted savings
# Predictions of statements may overlap, so each is credited only with savings that earlier
# statements leave. Nothing is predicted for files of older partition specs: a rewrite moves their
# rows to partitions that metadata does not show.


def with_gains(findings: Sequence[Finding], facts: Facts) -> tuple[Finding, ...]:
    """The findings with the savings of their statements in files, requests and planning."""
    forecast = _Forecast(facts)
    return tuple(
        replace(each, gain=each.gain + forecast.gain(each)) if each.statement else each
        for each in findings
    )


class _Forecast(Struct):
    """Tracks the files and manifests that are left after the statements so far."""

    facts: Facts
    left: tuple[int, int] | None = None
    live: list[frozenset[Any]] = []

    def gain(self, finding: Finding) -> Gain:
        """The savings of a finding's statement after the earlier ones."""
        files, need = self.facts.files, finding.need
        if need is None:
            return Gain()
        if self.left is None:
            self.live = [*self._listed()]
            self.left = files.count + files.deletes, len(self.live)
        before = self.left
        if need.rewrite is None:
            deletes = need.promise.get("delete_files")
            promised = (
                before[0] if deletes is None else files.count + deletes,
                need.promise.get("manifests", before[1]),
            )
        else:
            promised = self._rewritten(need.rewrite)
        self.left = min(before[0], promised[0]), min(before[1], promised[1])
        fewer, manifests = (old - new for old, new in zip(before, self.left, strict=True))
        seconds = files.seconds * manifests / max(len(self.live), 1)
        return Gain(fewer, 0, fewer + manifests, seconds)

    def _listed(self) -> Iterator[frozenset[Any]]:
        """For each manifest, the paths of its live data files, or the keys of its live deletes."""
        table = self.facts.table
        reader = ManifestReader(table, self.facts.query)
        for manifest, entries in reader.entries_of(self.facts.files.manifests):
            live = entries.live_indexes
            if live and manifest.content is ManifestContent.DATA:
                yield frozenset(entries.path[index] for index in live)
            elif live:
                yield frozenset(file_key(entries.data_file(index)) for index in live)

    def _rewritten(self, plan: RewritePlan) -> tuple[int, int]:
        """The counts of files and manifests after a compaction, without deletes of its files."""
        files, sizes = self.facts.files, Sizes.of(plan)
        if not plan.groups or sizes.older:
            return files.count + files.deletes, len(self.live)
        kept = {each.data_file.path for each in plan.left}
        deletes = {*map(file_key, distinct_deletes(plan.left))}
        # Manifests without entries for other files disappear.
        left = sum(not each.isdisjoint(kept | deletes) for each in self.live)
        return files.count - sizes.read + sizes.made + len(deletes), left + 1


# ------------------------------------------------------------------ damage in the history


_MOST_PICKED: Final = 50
_SHOWN: Final = 10


class Examined(Frozen):
    """The examination of a table's history; ``last_good`` has the snapshots to roll back to.

    The first findings belong to ``damages``, one each; findings about old snapshots follow.

    ``is_readable``: the head of main can be read.
    """

    findings: tuple[Finding, ...] = ()
    damages: tuple[Damage, ...] = ()
    last_good: frozenset[int] = frozenset()
    is_readable: bool = True


def examine_history(parts: Sequence[str], table: Table, query: QueryContext) -> Examined:
    """Look for damage in the history of a table. Raises errors of stores, and CorruptFileError."""
    history = History(table, query)
    history.look_for_files()
    found = damages(history)
    good: set[int] = set()
    findings = []
    for each in found:
        last = _last_good(history, each, found)
        if last is not None:
            good.add(last.snapshot_id)
        findings.append(_finding(parts, history, each, last, found))
    findings += _broken_past(parts, history)
    main = history.chains.get(MAIN)
    return Examined(
        tuple(findings), tuple(found), frozenset(good), not main or history.is_readable(main[0])
    )


def _last_good(history: History, damage: Damage, found: Sequence[Damage]) -> Snapshot | None:
    """The latest readable snapshot before all damage of a branch; None if there is none."""
    chain = history.chains[damage.branch]
    blamed = {
        each.snapshot.snapshot_id
        for each in found
        if each.branch == damage.branch and (each.certain or each is damage)
    }
    oldest = max(place for place, each in enumerate(chain) if each.snapshot_id in blamed)
    for each in chain[oldest + 1 :]:
        if not history.names_missing(each) and history.is_readable(each):
            return each
    return None


def _finding(
    parts: Sequence[str],
    history: History,
    damage: Damage,
    last: Snapshot | None,
    found: Sequence[Damage],
) -> Finding:
    told = f"{_named(damage.snapshot)} of {damage.branch}: {damage.told}"
    if not damage.certain:
        told += ". Compare the rows before and after it (VERSION AS OF) first"
    weight: Weight = "high" if damage.certain else "medium"
    if last is None:
        return Finding(damage.kind, weight, told, "no snapshot before it is left to go back to")
    statement, again = _way_back(parts, history, damage, last, found)
    cost = f"the last good snapshot is {last.snapshot_id}, and {_expiry(parts, history, last)}"
    if again:
        ids = ", ".join(_named(each) for each in again[:_SHOWN])
        more = f" and {len(again) - _SHOWN} more" if len(again) > _SHOWN else ""
        cost += f". What the statement does not bring again is to be made again: {ids}{more}"
    return Finding(damage.kind, weight, told, cost, statement)


def _way_back(
    parts: Sequence[str],
    history: History,
    damage: Damage,
    last: Snapshot,
    found: Sequence[Damage],
) -> tuple[Statement, list[Snapshot]]:
    """The statement that sets the branch back and repeats later appends; the changes left out."""
    chain = history.chains[damage.branch]
    since = [*reversed(chain[: chain.index(last)])]
    changes = [each for each in since if each.operation != "replace"]
    if damage.branch != MAIN:
        return replace_branch(parts, damage.branch, last.snapshot_id), changes
    twice = {each.snapshot.snapshot_id for each in found if each.kind == "file twice"}
    left: list[Snapshot] = []
    picked: list[Snapshot] = []
    lost = {*history.names_missing(last)}
    is_append = True
    for each in changes:
        # An append after another change of rows cannot be repeated before that change.
        is_append = is_append and each.operation == "append"
        missing = {*history.names_missing(each)} - lost
        lost |= missing
        whole = history.is_readable(each) and not missing and each.snapshot_id not in twice
        chosen = is_append and whole and len(picked) < _MOST_PICKED
        (picked if chosen else left).append(each)
    if picked and picked[0] == damage.snapshot:
        # As the first commit after the last good one it would be fast-forwarded unchanged, with
        # its damage: others come first.
        picked = [*picked[1:], picked[0]]
        if len(picked) == 1:
            left.insert(0, picked.pop())
    statement = call("rollback_to_snapshot", parts, snapshot_id=last.snapshot_id)
    for each in picked:
        pick = call("cherrypick_snapshot", parts, snapshot_id=each.snapshot_id)
        statement = statement.then(pick)
    return statement, left


def _expiry(parts: Sequence[str], history: History, last: Snapshot) -> str:
    """A text on when the last good snapshot expires, and how to keep it."""
    metadata = history.table.metadata
    try:
        gone = plan_expiry(metadata, now_ms=time.time_ns() // 1_000_000).snapshot_ids
    except ProgrammingError:
        gone = ()
    when = "now" if last.snapshot_id in gone else "when it is old enough"
    keeps = f"ALTER TABLE {name_text(parts)} CREATE TAG last_good AS OF VERSION {last.snapshot_id}"
    if any(each.snapshot_id == last.snapshot_id for each in metadata.refs.values()):
        return "a branch or tag keeps it"
    return f"expire_snapshots removes it {when}: {keeps} keeps it"


def _broken_past(parts: Sequence[str], history: History) -> Iterator[Finding]:
    """Old snapshots that need missing files; no branch or tag is at one of them."""
    heads = {each.snapshot_id for each in history.table.metadata.refs.values()}
    chains = [each for each in history.chains.values() if each]
    needed = {path for chain in chains for path in history.names_missing(chain[0])}
    broken: dict[int, Snapshot] = {}
    for chain in chains:
        for each in chain:
            lost = [path for path in history.names_missing(each) if path not in needed]
            if lost and each.snapshot_id not in heads:
                broken[each.snapshot_id] = each
    if broken:
        ids = f"array({', '.join(map(str, broken))})"
        yield Finding(
            "broken snapshots",
            "low",
            f"files of {plural(len(broken), 'old snapshot')} are missing",
            "time travel to them fails; the table itself does not need these files",
            call("expire_snapshots", parts, snapshot_ids=constant(ids)),
            "broken snapshots",
            len(broken),
            0,
        )


def _named(snapshot: Snapshot) -> str:
    return f"snapshot {snapshot.snapshot_id} ({snapshot.operation or 'unknown'})"


# ------------------------------------------------------------------ examination


_EXAMINATIONS: Final = (
    small_files, delete_files, overlap, missing_bounds, missing_nan_counts, skew, manifests,
    snapshots, metadata_files, metadata_size, orphans, partition_names, flink_streams,
)  # fmt: skip


def diagnose(
    parts: Sequence[str], perform: Perform, table: Table, query: QueryContext
) -> Diagnosis:
    """Examine a table: its findings, the heaviest first. Changes nothing.

    Raises errors of stores, and CorruptFileError.
    """
    history = examine_history(parts, table, query)
    found = [*history.findings]
    if history.is_readable:
        facts = facts_of(
            parts, table, query, perform, TablePolicy(wants_expiry=True), now_ms(),
            last_good=history.last_good, bounds=True,
        )  # fmt: skip
        own = [finding for examine in _EXAMINATIONS for finding in examine(facts)]
        found += with_gains(own, facts)
    found.sort(key=lambda each: WEIGHTS.index(each.weight))
    return Diagnosis(name_text(parts), table.metadata.current_snapshot_id, tuple(found))


def diagnose_each(
    tables: Sequence[Sequence[str]],
    one: Callable[[Sequence[str]], Diagnosis | None],
    query: QueryContext,
) -> Iterator[Diagnosis]:
    """The diagnosis of each table by ``one``, in the order given; None for a dropped table.

    A failing table yields a diagnosis with its error. Raises QueryCancelledError if ``query``,
    which covers all tables, was cancelled.
    """
    for done, parts in enumerate(tables):
        query.check()
        query.report(Progress("tables", done, len(tables)))
        try:
            found = one(parts)
        except Exception as error:
            query.check()  # a cancelled query is not an error of this table
            found = failed(parts, error)
        if found is not None:
            yield found
    query.check()


def failed(parts: Sequence[str], error: Exception) -> Diagnosis:
    """The diagnosis for a table that could not be examined."""
    return Diagnosis(name_text(parts), None, (), error_text(error))


def error_text(error: Exception) -> str:
    """The message of an error, with its class if it is a bug."""
    text = str(error)
    if not isinstance(error, Error) or isinstance(error, InternalError):
        text = f"{type(error).__name__}: {text} (this is a bug in icesql)"
    return text or type(error).__name__


def worst_first(tables: Iterable[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Tables with errors first, then by the weights of their findings, then by their gains."""
    return tuple(sorted(tables, key=_order))


def _order(table: Diagnosis) -> tuple[Any, ...]:
    weights = [-sum(each.weight == weight for each in table.findings) for weight in WEIGHTS]
    gain = table.gain
    return (not table.error, *weights, -gain.requests, -gain.bytes, table.table)
