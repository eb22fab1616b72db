"""Checks that files written for the table's state at planning time fit its current state.

An append can be applied to any later state. But its files refer to column ids and to a partition
spec, whose meaning may have changed: CREATE OR REPLACE TABLE keeps the uuid, and other engines then
give a new column the id of the old column of its name, even if the type differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from icesql.catalog.table import Table
from icesql.commit.snapshots.branches import Branch, branch_head
from icesql.errors import CommitConflictError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.schema import Schema

_REPLACED: Final = "it was replaced by another table"


def check_planned(found: Table, base: Table, branch: Branch, added: Collection[DataFile]) -> None:
    """Raise CommitConflictError if files made for ``found`` do not fit ``base``, the current state.

    ``added`` are the data files of new rows. Renamed, widened, added or dropped columns are no
    problem; a replaced table is, whatever its columns.
    """
    problem = _problem(found.metadata, base.metadata, branch, added)
    if problem is not None:
        raise CommitConflictError(
            f"{base.name} changed since the statement looked at it: {problem}; nothing was "
            "changed, run the statement again"
        )


def _problem(
    planned: TableMetadata, base: TableMetadata, branch: Branch, added: Collection[DataFile]
) -> str | None:
    if planned is base:
        return None
    is_named = isinstance(branch, str) and branch != MAIN
    if is_named and branch in planned.refs and branch not in base.refs:
        return f"the branch {branch!r} was dropped"
    problem = _of_types(planned.schema, base.schema)
    if problem is not None or not added:
        return problem
    return (
        _of_specs(planned, base, added)
        or _of_required(planned.schema, base.schema)
        or _of_history(planned, base, branch)
    )


def _of_types(planned: Schema, base: Schema) -> str | None:
    """The problem if a column of both schemas has an incompatible type or another parent."""
    for field_id, field in planned.field_by_id.items():
        now = base.field_by_id.get(field_id)
        if now is None:
            continue
        same_place = planned.parent_by_id.get(field_id) == base.parent_by_id.get(field_id)
        if not same_place or not is_readable(field.type, now.type):
            name = planned.name_by_id[field_id]
            return f'the column "{name}" was {field.type} and is {now.type}'
    return None


def is_readable(old: t.IcebergType, new: t.IcebergType) -> bool:
    """True if values of one type can be read as another; children are checked as fields."""
    if isinstance(old, t.PrimitiveType) or isinstance(new, t.PrimitiveType):
        return is_widening(old, new)
    return type(old) is type(new)


def _of_required(planned: Schema, base: Schema) -> str | None:
    """The problem if a column is required now and the new rows may lack a value for it."""
    for field_id, now in base.field_by_id.items():
        if not now.required:
            continue
        before = planned.field_by_id.get(field_id)
        if before is None:
            parent = base.parent_by_id.get(field_id)
            is_written = parent is None or parent in planned.field_by_id
            lacks = is_written and now.initial_default in (t.MISSING, None)
        else:
            lacks = not before.required
        if lacks:
            return f'the column "{base.name_by_id[field_id]}" is NOT NULL'
    return None


def _of_specs(planned: TableMetadata, base: TableMetadata, added: Iterable[DataFile]) -> str | None:
    """The problem if a partition spec of the files is gone, or its id means another spec."""
    for spec_id in {each.spec_id for each in added}:
        before, now = planned.specs.get(spec_id), base.specs.get(spec_id)
        if now is None or (before is not None and before.fields != now.fields):
            return f"its partition spec {spec_id} is gone, or another one"
    return None


def _of_history(planned: TableMetadata, base: TableMetadata, branch: Branch) -> str | None:
    """The problem if REPLACE TABLE has restarted the branch.

    If the history does not show that, because the branch was empty or snapshots are expired, a
    missing column is the problem: rows of a replaced table would be reduced to NULLs.
    """
    _, start = branch_head(planned, branch)
    _, current = branch_head(base, branch)
    if start is not None and current is None:
        return _REPLACED
    for each in base.ancestry(None if start is None else current):
        # Not restarted: it was rolled back, or set to a snapshot that existed at planning time.
        if each.snapshot_id in planned.snapshots:
            return None
        if each.parent_snapshot_id is None:
            return _REPLACED
        if start is not None and each.parent_snapshot_id == start.snapshot_id:
            return None
    for field_id, name in planned.schema.name_by_id.items():
        if field_id not in base.schema.field_by_id:
            return f'the column "{name}" is gone'
    return None
