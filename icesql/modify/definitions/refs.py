"""Create, replace, fast-forward and drop branches and tags."""

from __future__ import annotations

from msgspec.structs import asdict

from icesql.commit import refs
from icesql.commit.change import change_table
from icesql.errors import found_at
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.modify.modified import Modified
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target
from icesql.query.snapshot_selection import select_snapshot
from icesql.sql.writes.alter.refs import CreateRef, DropRef, FastForward


def change_ref(
    statement: CreateRef | DropRef | FastForward, services: StatementServices
) -> Modified:
    """Make the change in one commit.

    Raises ProgrammingError where the name is taken, or is missing for replacing or dropping, and
    SnapshotNotFoundError.
    """
    catalog, table, _ = find_target(statement.table, services)
    match statement:
        case DropRef(kind=kind, name=name, if_exists=if_exists):
            change = refs.drop_ref(name, kind, if_exists=if_exists)
        case FastForward(branch=branch, to=to):
            change = refs.fast_forward(branch, to)
        case CreateRef(kind=kind, name=name, retention=kept):
            retention = {key: each for key, each in asdict(kept).items() if each is not None}
            empty = not table.metadata.snapshots and name not in table.metadata.refs
            if empty and kind == "branch" and not statement.must_exist and not statement.travel:
                ref = SnapshotRef(0, "branch", **retention)
                refs.create_branch_of_empty(catalog, table, name, ref, services.query)
                return Modified()
            snapshot_id = None
            if statement.travel is not None:
                with found_at(statement.table.offset):
                    found = select_snapshot(table, statement.travel, services.query).snapshot
                snapshot_id = None if found is None else found.snapshot_id
            change = refs.create_ref(
                name,
                kind,
                snapshot_id=snapshot_id,
                if_exists=statement.if_exists,
                must_exist=statement.must_exist,
                **retention,
            )
    before = table.metadata_location
    done = change_table(catalog, table, change, query=services.query)
    if done.metadata_location == before:
        return Modified(note="nothing was to be done")
    return Modified()
