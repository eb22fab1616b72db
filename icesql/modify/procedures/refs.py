"""Procedures that set what branches are: rollback, cherry-pick, publish, fast-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from icesql.catalog.table import Catalog, Table
from icesql.commit import refs
from icesql.commit.change import MakeUpdates, change_table
from icesql.errors import SnapshotNotFoundError
from icesql.iceberg.metadata.changes.updates import SetSnapshotRef, Update
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.modify.procedures import undo
from icesql.modify.procedures.call import Call
from icesql.modify.targets import with_branch
from icesql.scan.incremental import ancestors
from icesql.sql.table_name import name_text


def rollback_to_snapshot(call: Call) -> Plan:
    """Set ``main`` back to an ancestor; -1 is the parent of the head, also of a branch."""
    wanted = call["snapshot_id"]
    if wanted < 0:  # some writers give snapshots negative ids
        catalog, table, branch = call.branch_target()
        if table.metadata.snapshot(wanted) is None:
            return _stepped_back(call, catalog, table, branch, -wanted)
    return _moved(call, refs.rollback_to_snapshot(wanted))


def _stepped_back(call: Call, catalog: Catalog, table: Table, branch: str, commits: int) -> Plan:
    parts = call.table_name().parts
    name = name_text(parts if branch == MAIN else with_branch(parts)[0])
    found = undo.taken_back(table, name, branch, commits)
    head, target = found[0].snapshot_id, found[-1].snapshot_id
    if call.head is not None:
        refs.step_back(branch, call.head, target)(table.metadata)
    note = undo.described(table, name, branch, found, call.services.query)
    steps = [Step("set", "branch", branch, _from_to(head, target, _told(table.metadata, target)))]
    steps += [
        Step("keep", "snapshot", str(each.snapshot_id), "until it expires") for each in found[:-1]
    ]

    def run() -> Rows:
        make = refs.step_back(branch, head, target)
        change_table(catalog, table, make, query=call.services.query)
        return Rows([(head, target)], note)

    return Plan(steps, run, note)


def rollback_to_timestamp(call: Call) -> Plan:
    """Set ``main`` back to its last snapshot before an instant."""
    return _moved(call, refs.rollback_to_timestamp(call["timestamp"]))


def set_current_snapshot(call: Call) -> Plan:
    """Set ``main`` to any snapshot, by its id or by a ref."""
    wanted, ref = call["snapshot_id"], call["ref"]
    if (wanted is None) == (ref is None):
        raise call.wrong("snapshot_id", "or ref says the snapshot: give one of them")

    def updates(base: TableMetadata) -> Sequence[Update]:
        if ref is None:
            return refs.set_current_snapshot(wanted)(base)
        if ref not in base.refs:
            raise SnapshotNotFoundError(
                f"branch or tag {ref!r}", table=base.location, similar=base.refs
            )
        return refs.set_current_snapshot(base.refs[ref].snapshot_id)(base)

    return _moved(call, updates)


def fast_forward(call: Call) -> Plan:
    """A branch at the head of another one."""
    catalog, table = call.target()
    branch, to = call["branch"], call["to"]
    make = refs.fast_forward(branch, to)
    make(table.metadata)
    before, after = _head(table.metadata, branch), _head(table.metadata, to)
    step = Step("set", "branch", branch, _from_to(before, after, f", the head of {to}"))

    def run() -> Rows:
        seen, done = _changed(call, catalog, table, make)
        return Rows([(branch, _head(seen, branch), _head(done.metadata, branch))])

    return Plan([step] if before != after else [], run, _nothing_to_do(before == after))


def cherrypick_snapshot(call: Call) -> Plan:
    """The change of a snapshot in ``main``."""
    catalog, table = call.target()
    found = table.metadata.snapshot(call["snapshot_id"])
    if found is None:
        raise SnapshotNotFoundError(f"snapshot {call['snapshot_id']}", table=table.name)
    return _picked(call, catalog, table, found)


def publish_changes(call: Call) -> Plan:
    """The change of the snapshot that was staged with an id, in ``main``."""
    catalog, table = call.target()
    wanted = call["wap_id"]
    for each in table.metadata.snapshots.values():
        if each.summary.get("wap.id") == wanted:
            return _picked(call, catalog, table, each)
    raise SnapshotNotFoundError(f"a snapshot with wap.id {wanted!r}", table=table.name)


def ancestors_of(call: Call) -> Plan:
    """The ancestors of a snapshot, latest first."""
    _, table = call.target()
    wanted = call["snapshot_id"]
    start = table.metadata.current_snapshot if wanted is None else table.metadata.snapshot(wanted)
    if start is None and wanted is not None:
        raise SnapshotNotFoundError(f"snapshot {wanted}", table=table.name)
    found = [*reversed(ancestors(table, start))]
    steps = [
        Step("read", "snapshot", str(each.snapshot_id), each.operation or "") for each in found
    ]
    return Plan(steps, lambda: Rows([(each.snapshot_id, each.timestamp_ms) for each in found]))


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "ancestors_of": ancestors_of,
    "cherrypick_snapshot": cherrypick_snapshot,
    "fast_forward": fast_forward,
    "publish_changes": publish_changes,
    "rollback_to_snapshot": rollback_to_snapshot,
    "rollback_to_timestamp": rollback_to_timestamp,
    "set_current_snapshot": set_current_snapshot,
}


def _moved(call: Call, make: MakeUpdates) -> Plan:
    """Set ``main`` to another snapshot: one step, from the id before to the one after."""
    catalog, table = call.target()
    metadata = table.metadata
    wanted = [each.ref.snapshot_id for each in make(metadata) if isinstance(each, SetSnapshotRef)]
    before = metadata.current_snapshot_id
    after = wanted[0] if wanted else before
    steps = [Step("set", "branch", MAIN, _from_to(before, after, _told(metadata, after)))]

    def run() -> Rows:
        seen, done = _changed(call, catalog, table, make)
        return Rows([(seen.current_snapshot_id, done.metadata.current_snapshot_id)])

    return Plan(steps if wanted else [], run, _nothing_to_do(not wanted))


def _picked(call: Call, catalog: Catalog, table: Table, picked: Snapshot) -> Plan:
    metadata = table.metadata
    refs.check_pick(table, picked)
    if picked.parent_snapshot_id == metadata.current_snapshot_id:
        description = _from_to(
            metadata.current_snapshot_id, picked.snapshot_id, ", which follows it"
        )
        steps = [Step("set", "branch", MAIN, description)]
    else:
        reason = f"the files that snapshot {picked.snapshot_id} added are added to main"
        records, size = map(picked.summary.get, ("added-records", "added-files-size"))
        steps = [
            Step(
                "write", "snapshot", "(a new one)", reason,
                whole_number(size), whole_number(records),
            )
        ]  # fmt: skip

    def run() -> Rows:
        done = refs.cherry_pick(catalog, table, picked.snapshot_id, query=call.services.query)
        current = done.table.metadata.current_snapshot_id
        return Rows([(picked.snapshot_id, current)], snapshot_id=current)

    return Plan(steps, run)


def _changed(
    call: Call, catalog: Catalog, table: Table, make: MakeUpdates
) -> tuple[TableMetadata, Table]:
    """The metadata that the change was made of, and the table after it."""
    seen: list[TableMetadata] = []

    def updates(base: TableMetadata) -> Sequence[Update]:
        seen.append(base)
        return make(base)

    done = change_table(catalog, table, updates, query=call.services.query)
    return seen[-1], done.table


def _head(metadata: TableMetadata, name: str) -> int | None:
    ref = metadata.refs.get(name)
    return None if ref is None else ref.snapshot_id


def _told(metadata: TableMetadata, snapshot_id: int | None) -> str:
    snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return ""
    moment = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    return f" of {moment.isoformat(sep=' ', timespec='milliseconds')}"


def _from_to(before: int | None, after: int | None, more: str) -> str:
    start = "it has no snapshot" if before is None else f"from snapshot {before}"
    return f"{start} to snapshot {after}{more}"


def _nothing_to_do(nothing: bool) -> str:
    return "nothing is to be done: it is there already" if nothing else ""
