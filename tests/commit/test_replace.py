"""CREATE OR REPLACE keeps the history of a table; DROP PURGE leaves nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.commit.create import replace_table, stage_replacement
from icesql.commit.deletion import drop_table
from icesql.commit.file_changes import change_table
from icesql.commit.rows import commit_append
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import NewColumn, add_column, schema_updates
from icesql.iceberg.evolution.spec_changes import PartitionRequest
from icesql.iceberg.metadata.changes.updates import AddPartitionSpec, SetDefaultSpec
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.maintain.statistics_files import compute_partition_statistics
from tests.commit.tables import CATALOGS, create, fake, head, live, sqlite, written

OTHER = Schema(
    (t.NestedField(1, "p", t.STRING), t.NestedField(2, "n", t.LONG), t.NestedField(3, "id", t.LONG))
)


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path):
    return CATALOGS[request.param](tmp_path)


def test_a_table_is_replaced_with_its_history_kept(catalog) -> None:
    table = create(catalog, partitioned=True, kept="yes")
    old = commit_append(catalog, table, [fake("a", partition=("x",))])
    table = commit_append(catalog, old.table, [fake("b", partition=("x",))], branch="audit").table
    staged = stage_replacement(table, OTHER, properties={"new": "1"})
    assert staged.table.metadata.schema.name_by_id == {2: "p", 3: "n", 1: "id"}
    done = replace_table(
        catalog, staged, [fake("c", rows=4, spec_id=staged.table.metadata.default_spec_id)]
    )
    after = done.table.metadata
    assert after.table_uuid == table.metadata.table_uuid
    assert live(done.table) == {"c"}
    assert head(done.table).parent_snapshot_id is None
    assert head(done.table).sequence_number == 3
    assert head(done.table).schema_id == after.current_schema_id == 1
    assert done.summary["total-records"] == "4"
    assert live(done.table, after.snapshots[old.snapshot_id]) == {"a"}
    assert live(done.table, head(done.table, "audit")) == {"a", "b"}
    assert (after.properties["kept"], after.properties["new"]) == ("yes", "1")
    assert after.spec.fields == ()
    assert [each.snapshot_id for each in after.snapshot_log] == [old.snapshot_id, done.snapshot_id]


def test_a_replacement_without_rows_is_empty(catalog) -> None:
    table = commit_append(catalog, create(catalog), [fake("a")]).table
    done = replace_table(catalog, stage_replacement(table, OTHER))
    assert done.table.metadata.current_snapshot_id is None
    assert len(done.table.metadata.snapshots) == 1
    again = commit_append(catalog, done.table, [fake("b")])
    assert live(again.table) == {"b"}


def test_partition_fields_keep_their_ids(catalog) -> None:
    table = create(catalog, partitioned=True)
    requests = [PartitionRequest("n", "bucket[2]"), PartitionRequest("p")]
    done = replace_table(catalog, stage_replacement(table, OTHER, partitioning=requests))
    assert [(f.field_id, f.name) for f in done.table.metadata.spec.fields] == [
        (1001, "n_bucket"), (1000, "p"),
    ]  # fmt: skip
    assert done.table.metadata.last_partition_id == 1001


OF_OTHER_TYPES = Schema(
    (
        t.NestedField(1, "p", t.LONG),
        t.NestedField(2, "id", t.STRING),
        t.NestedField(
            3, "s", t.StructType((t.NestedField(4, "x", t.LONG), t.NestedField(5, "y", t.STRING)))
        ),
        t.NestedField(6, "l", t.ListType(7, t.STRING)),
    )
)


def test_a_column_of_a_type_that_its_files_cannot_be_read_by_gets_a_new_id(catalog) -> None:
    """Branches, and main after a rollback, are read by the columns that there are now."""
    table = create(catalog)
    staged = stage_replacement(table, OF_OTHER_TYPES)
    names = staged.table.metadata.schema.name_by_id
    assert {1, 2}.isdisjoint(names)
    table = replace_table(catalog, staged).table
    ids = {name: field_id for field_id, name in names.items()}
    wider = Schema(
        (
            t.NestedField(
                1,
                "s",
                t.StructType((t.NestedField(2, "x", t.STRING), t.NestedField(3, "y", t.STRING))),
            ),
            t.NestedField(4, "l", t.ListType(5, t.LONG)),
            t.NestedField(6, "p", t.LONG),
        )
    )
    again = stage_replacement(table, wider).table.metadata.schema
    now = {name: field_id for field_id, name in again.name_by_id.items()}
    kept = {name for name in now if now[name] == ids.get(name)}
    assert kept == {"s", "s.y", "p"}
    assert min(now[name] for name in {*now} - kept) > max(names)


def test_partition_fields_of_format_1_keep_their_places(catalog) -> None:
    """Java takes no others there."""
    table = create(catalog, version=1, partitioned=True)
    requests = [PartitionRequest("n", "bucket[2]")]
    done = replace_table(catalog, stage_replacement(table, OTHER, partitioning=requests))
    assert [(f.field_id, f.name, f.transform) for f in done.table.metadata.spec.fields] == [
        (1000, "p", "void"), (1001, "n_bucket", "bucket[2]"),
    ]  # fmt: skip
    requests = [PartitionRequest("n", "truncate[5]"), PartitionRequest("p")]
    done = replace_table(catalog, stage_replacement(done.table, OTHER, partitioning=requests))
    assert [(f.field_id, f.name, f.transform) for f in done.table.metadata.spec.fields] == [
        (1000, "p_1000", "void"), (1001, "n_bucket", "void"), (1002, "n_trunc", "truncate[5]"),
        (1003, "p", "identity"),
    ]  # fmt: skip
    without = Schema((t.NestedField(1, "id", t.LONG),))
    with pytest.raises(ProgrammingError, match="stays in a table of format version 1"):
        stage_replacement(done.table, without)
    staged = stage_replacement(done.table, without, properties={"format-version": "2"})
    assert staged.spec.fields == ()


def test_rows_of_others_go_into_the_history(catalog) -> None:
    table = create(catalog)
    staged = stage_replacement(table, OTHER)
    commit_append(catalog, table, [fake("late")])
    done = replace_table(
        catalog, staged, [fake("c", spec_id=staged.table.metadata.default_spec_id)]
    )
    assert live(done.table) == {"c"}
    assert len(done.table.metadata.snapshots) == 2
    assert head(done.table).sequence_number == 2


def test_columns_of_others_are_a_conflict(catalog) -> None:
    table = create(catalog)
    staged = stage_replacement(table, OTHER)
    change_table(
        catalog, table,
        lambda base: schema_updates(base, add_column(base.schema, base.last_column_id, NewColumn(("z",), t.LONG))[0]),
    )  # fmt: skip
    with pytest.raises(CommitConflictError, match="were added to"):
        replace_table(catalog, staged)


def test_files_are_not_told_by_a_spec_of_others(catalog) -> None:
    """Dropping a partition field gives the id of the staged spec to another, with no new field."""
    table = create(catalog, partitioned=True)
    staged = stage_replacement(table, OTHER, partitioning=[PartitionRequest("n", "bucket[4]")])
    spec_id = staged.table.metadata.default_spec_id
    file = fake("a", partition=(1,), spec_id=spec_id)

    def unpartitioned(base):
        return AddPartitionSpec(PartitionSpec(9, ())), SetDefaultSpec()

    after = change_table(catalog, table, unpartitioned).table
    assert after.metadata.default_spec_id == spec_id
    with pytest.raises(CommitConflictError, match="another partitioning"):
        replace_table(catalog, staged, [file])
    assert catalog.load(table.identifier).metadata_location == after.metadata_location


def test_a_format_only_goes_up(catalog) -> None:
    table = create(catalog)
    done = replace_table(
        catalog, stage_replacement(table, OTHER, properties={"format-version": "3"})
    )
    assert done.table.metadata.format_version == 3
    with pytest.raises(ProgrammingError, match="it can be 3 to 3"):
        stage_replacement(done.table, OTHER, properties={"format-version": "2"})


def test_a_purge_leaves_no_file(catalog) -> None:
    table = create(catalog)
    for name in "ab":
        table = commit_append(catalog, table, [written(table, name, [(1, "x")])]).table
    drop_table(catalog, table, purge=True)
    place = Path(table.metadata.location)
    assert [each for each in place.rglob("*") if each.is_file()] == []
    assert catalog.tables() == []


def test_a_purge_takes_statistics_along(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = commit_append(catalog, create(catalog, partitioned=True), [fake("a", partition=("x",))])
    snapshot = head(table.table)
    compute_partition_statistics(catalog, table.table, snapshot, QueryContext())
    drop_table(catalog, catalog.load(("ns", "t")), purge=True)
    place = Path(table.table.metadata.location)
    assert [each for each in place.rglob("*") if each.is_file()] == []


def test_files_of_another_table_stay(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog, **{"gc.enabled": "false"})
    table = commit_append(catalog, table, [written(table, "a", [(1, "x")])]).table
    drop_table(catalog, table, purge=True)
    left = [each.name for each in Path(table.metadata.location).rglob("*") if each.is_file()]
    assert left == ["a.parquet"]


def test_a_drop_keeps_the_files(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog)
    assert drop_table(catalog, table) == ""
    assert Path(table.metadata_location).is_file()
