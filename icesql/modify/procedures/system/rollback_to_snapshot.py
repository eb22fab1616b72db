"""rollback_to_snapshot: set main back to an ancestor, or a branch some commits back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import MOVED, TABLE, Plan, Rows, Step, procedure, required

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.modify.procedures.call import Call


@procedure(
    "sets main back to a snapshot that led to it; -1 is one commit back, also of t.branch_x",
    TABLE,
    required("snapshot_id", "bigint"),
    rows=MOVED,
)
def rollback_to_snapshot(call: Call) -> Plan:
    """Set ``main`` back to an ancestor; -1 is the parent of the head, also of a branch."""
    from icesql.commit import refs
    from icesql.modify.procedures.refs import moved

    wanted = call["snapshot_id"]
    if wanted < 0:  # some writers give snapshots negative ids
        catalog, table, branch = call.branch_target()
        if table.metadata.snapshot(wanted) is None:
            return _stepped_back(call, catalog, table, branch, -wanted)
    return moved(call, refs.rollback_to_snapshot(wanted))


def _stepped_back(call: Call, catalog: Catalog, table: Table, branch: str, commits: int) -> Plan:
    from icesql.commit import refs
    from icesql.commit.file_changes import change_table
    from icesql.iceberg.metadata.table_metadata import MAIN
    from icesql.modify.procedures.refs import described, from_to, moment_of, taken_back
    from icesql.modify.targets import with_branch
    from icesql.sql.table_name import name_text

    parts = call.table_name().parts
    name = name_text(parts if branch == MAIN else with_branch(parts)[0])
    if call.head is not None:
        refs.check_head(table.metadata, branch, call.head)
    found = taken_back(table, name, branch, commits)
    head, target = found[0].snapshot_id, found[-1].snapshot_id
    note = described(table, name, branch, found, call.query)
    steps = [
        Step("set", "branch", branch, from_to(head, target, moment_of(table.metadata, target)))
    ]
    steps += [
        Step("keep", "snapshot", str(each.snapshot_id), "until it expires") for each in found[:-1]
    ]

    def run() -> Rows:
        make = refs.step_back(branch, head, target)
        change_table(catalog, table, make, query=call.query)
        return Rows([(head, target)], note)

    return Plan(steps, run, note)
