"""Code that procedures which set branches share: the step, the change and their descriptions."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.catalog.table import Catalog, Table
from icesql.commit import refs
from icesql.commit.change import MakeUpdates, change_table
from icesql.iceberg.metadata.changes.updates import SetSnapshotRef, Update
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.modify.procedures.call import Call, moment
from icesql.modify.procedures.procedure import Plan, Rows, Step


def moved(call: Call, make: MakeUpdates) -> Plan:
    """Set ``main`` to another snapshot: one step, from the previous id to the new one."""
    catalog, table = call.target()
    metadata = table.metadata
    wanted = [each.ref.snapshot_id for each in make(metadata) if isinstance(each, SetSnapshotRef)]
    before = metadata.current_snapshot_id
    after = wanted[0] if wanted else before
    steps = [Step("set", "branch", MAIN, from_to(before, after, moment_of(metadata, after)))]

    def run() -> Rows:
        seen, done = changed(call, catalog, table, make)
        return Rows([(seen.current_snapshot_id, done.metadata.current_snapshot_id)])

    return Plan(steps if wanted else [], run, nothing_to_do(not wanted))


def picked_snapshot(call: Call, catalog: Catalog, table: Table, picked: Snapshot) -> Plan:
    """Plan to apply the change of a snapshot to ``main``."""
    metadata = table.metadata
    refs.check_pick(table, picked)
    if picked.parent_snapshot_id == metadata.current_snapshot_id:
        description = from_to(
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
        done = refs.cherry_pick(catalog, table, picked.snapshot_id, query=call.query)
        current = done.table.metadata.current_snapshot_id
        return Rows([(picked.snapshot_id, current)], snapshot_id=current)

    return Plan(steps, run)


def changed(
    call: Call, catalog: Catalog, table: Table, make: MakeUpdates
) -> tuple[TableMetadata, Table]:
    """Commit the change; return the metadata that it was computed from, and the new table."""
    seen: list[TableMetadata] = []

    def updates(base: TableMetadata) -> Sequence[Update]:
        seen.append(base)
        return make(base)

    done = change_table(catalog, table, updates, query=call.query)
    return seen[-1], done.table


def moment_of(metadata: TableMetadata, snapshot_id: int | None) -> str:
    """The time of a snapshot, as " of …"; "" for an unknown one."""
    snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return ""
    return f" of {moment(snapshot.timestamp_ms)}"


def from_to(before: int | None, after: int | None, more: str) -> str:
    """Describe the move of a branch from a snapshot to another one."""
    start = "it has no snapshot" if before is None else f"from snapshot {before}"
    return f"{start} to snapshot {after}{more}"


def nothing_to_do(nothing: bool) -> str:
    """The summary of a plan that may have no steps."""
    return "nothing is to be done: it is there already" if nothing else ""
