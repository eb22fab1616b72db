"""Findings about damage: the last good snapshot, and the statement that rolls back to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import ProgrammingError, plural
from icesql.frozen import Frozen
from icesql.health.damage import Damage, damages
from icesql.health.finding import Finding, Weight
from icesql.health.history import History
from icesql.health.statement import Statement, call, constant, replace_branch
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.maintain.expiry_plan import plan_expiry
from icesql.sql.table_name import name_text

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
