"""Files for a table that was replaced meanwhile: Java's REPLACE TABLE keeps uuid and ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from icesql.commit.branches import Staged
from icesql.commit.file_changes import change_table
from icesql.commit.refs import cherry_pick
from icesql.commit.rows import commit_append
from icesql.errors import CommitConflictError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from tests.commit.tables import Overtaken, create, directory, fake, head, live, written

INSIDE = t.StructType((t.NestedField(4, "x", t.LONG),))
LISTED = t.ListType(5, t.INTEGER)


@pytest.fixture
def catalog(tmp_path):
    return directory(tmp_path)


def columns(*fields: t.NestedField) -> Schema:
    return Schema(fields, 7)


def became(schema: Schema, *, anew: bool = False):
    """The table with another schema, as ALTER leaves it; or ``anew``, as REPLACE does."""

    def updates(base: TableMetadata) -> Sequence[u.Update]:
        found = [u.AddSchema(schema), u.SetCurrentSchema()]
        if anew and "main" in base.refs:
            found.append(u.RemoveSnapshotRef("main"))
        return found

    return updates


ID, P = t.NestedField(1, "id", t.LONG), t.NestedField(2, "p", t.STRING)
S, L = t.NestedField(3, "s", INSIDE), t.NestedField(6, "l", LISTED)
REFUSED = {
    "another type": (columns(t.NestedField(1, "id", t.STRING), P, S, L), '"id" was long and is string'),
    "narrower": (columns(t.NestedField(1, "id", t.INTEGER), P, S, L), '"id" was long and is int'),
    "a struct": (columns(t.NestedField(1, "id", INSIDE), P), '"id" was long and is struct'),
    "inside": (
        columns(ID, P, t.NestedField(3, "s", t.StructType((t.NestedField(4, "x", t.DOUBLE),)))),
        r'"s\.x" was long and is double',
    ),
    "element": (columns(ID, P, S, t.NestedField(6, "l", t.ListType(5, t.DATE))), r'"l\.element" was int'),
    "elsewhere": (columns(ID, P, t.NestedField(4, "x", t.LONG)), r'"s\.x" was'),
    "required": (columns(ID, t.NestedField(2, "p", t.STRING, required=True), S, L), '"p" is NOT NULL'),
    "a new required": (
        columns(ID, P, S, L, t.NestedField(9, "n", t.LONG, required=True)), '"n" is NOT NULL'
    ),
}  # fmt: skip
TAKEN = {
    "wider": columns(ID, P, S, t.NestedField(6, "l", t.ListType(5, t.LONG))),
    "renamed": columns(t.NestedField(1, "other", t.LONG), P, S, L),
    "dropped": columns(ID, S),
    "added": columns(ID, P, S, L, t.NestedField(9, "n", t.LONG)),
    "a required one with a default": columns(
        ID, P, S, L,
        t.NestedField(9, "n", t.LONG, required=True, initial_default=1, write_default=1),
    ),
}  # fmt: skip


def filled(catalog):
    table = create(catalog, version=3)
    table = change_table(catalog, table, became(columns(ID, P, S, L))).table
    return commit_append(catalog, table, [fake("a")]).table


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_are_others_by_now(catalog, name: str, first: bool) -> None:
    table = filled(catalog)
    schema, problem = REFUSED[name]
    file = written(table, "b", [(1, "x")])

    def change() -> None:
        change_table(catalog, table, became(schema))

    if first:
        change()
    late = Overtaken(catalog, *([] if first else [change]))
    with pytest.raises(CommitConflictError, match=problem):
        commit_append(late, table, [file])
    assert late.swaps == 1 - first
    assert live(catalog.load(table.identifier)) == {"a"}
    assert not Path(file.path).exists()


@pytest.mark.parametrize("name", TAKEN)
def test_columns_that_were_changed(catalog, name: str) -> None:
    table = filled(catalog)
    late = Overtaken(catalog, lambda: change_table(catalog, table, became(TAKEN[name])))
    assert live(commit_append(late, table, [fake("b")]).table) == {"a", "b"}


def test_a_table_that_begins_anew(catalog) -> None:
    """Also with the very same columns, and with rows by then."""
    table = filled(catalog)
    change_table(catalog, table, became(table.metadata.schema, anew=True))
    with pytest.raises(CommitConflictError, match="replaced by another"):
        commit_append(catalog, table, [fake("b")])
    other = commit_append(catalog, catalog.load(table.identifier), [fake("c")]).table
    with pytest.raises(CommitConflictError, match="replaced by another"):
        commit_append(catalog, table, [fake("b")])
    assert live(catalog.load(table.identifier)) == {"c"}
    assert live(commit_append(catalog, other, [fake("d")]).table) == {"c", "d"}


def test_a_table_of_which_nobody_knows_needs_its_columns(catalog) -> None:
    table = create(catalog)
    change_table(catalog, table, became(columns(P, t.NestedField(3, "q", t.LONG))))
    with pytest.raises(CommitConflictError, match='"id" is gone'):
        commit_append(catalog, table, [fake("b")])


def test_a_spec_whose_id_is_anothers(catalog) -> None:
    table = create(catalog, partitioned=True)

    def other(base: TableMetadata) -> Sequence[u.Update]:
        spec = PartitionSpec(1, (PartitionField((1,), 1001, "identity", "id"),))
        return u.AddPartitionSpec(spec), u.SetDefaultSpec()

    def without_old(base: TableMetadata) -> Sequence[u.Update]:
        return (u.RemovePartitionSpecs((0,)),)

    changed = change_table(catalog, table, other).table
    assert live(commit_append(catalog, table, [fake("a", partition=("x",))]).table) == {"a"}
    change_table(catalog, changed, without_old)
    with pytest.raises(CommitConflictError, match="partition spec 0 is gone"):
        commit_append(catalog, table, [fake("b", partition=("x",))])


def test_a_staged_snapshot_of_other_columns_is_not_picked(catalog) -> None:
    table = create(catalog)
    staged = commit_append(catalog, table, [written(table, "a", [(1, "x")])], branch=Staged("w"))
    table = commit_append(catalog, staged.table, [fake("b")]).table
    schema = columns(t.NestedField(1, "id", t.STRING), P)
    table = change_table(catalog, table, became(schema)).table
    with pytest.raises(CommitConflictError, match='"id" was long and is string'):
        cherry_pick(catalog, table, staged.snapshot_id)
    table = catalog.load(table.identifier)
    assert live(table) == {"b"}
    assert live(table, table.metadata.snapshots[staged.snapshot_id]) == {"a"}
    assert head(table).snapshot_id != staged.snapshot_id
