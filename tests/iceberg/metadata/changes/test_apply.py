"""What updates make of table metadata; PyIceberg reads what comes out."""

from __future__ import annotations

import copy
import json

import pytest

from icesql.errors import CommitConflictError, ProgrammingError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.apply import apply_updates, is_changed
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.sort_order import UNSORTED, SortField, SortOrder
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
ONE = Schema((t.NestedField(1, "id", t.LONG, True), t.NestedField(2, "name", t.STRING)))
TWO = Schema((*ONE.fields, t.NestedField(3, "day", t.DATE)))
BY_ID = PartitionSpec(0, (PartitionField((1,), 1000, "bucket[4]", "id_bucket"),))
ORDER = SortOrder(1, (SortField((1,), "identity", "asc", "nulls-first"),))


def created(version=2, spec=BY_ID, order=UNSORTED, schema=ONE, properties=None, now=1000):
    return after(
        None,
        u.AssignUuid(UUID),
        u.UpgradeFormatVersion(version),
        u.AddSchema(schema),
        u.SetCurrentSchema(),
        u.AddPartitionSpec(spec),
        u.SetDefaultSpec(),
        u.AddSortOrder(order),
        u.SetDefaultSortOrder(),
        u.SetLocation("file:/w/t/"),
        u.SetProperties(properties or {}),
        now=now,
    )


def snapshot(number, parent=None, base=None, rows=10, **others):
    version = 2 if base is None else base["format-version"]
    if version >= 3:
        others |= {"first_row_id": base["next-row-id"], "added_rows": rows}
    return Snapshot(
        number, parent, sequence_number=0 if version == 1 else number,
        timestamp_ms=1000 + number, manifest_list=f"file:/w/t/metadata/snap-{number}.avro",
        operation="append", summary={"added-records": str(rows)}, schema_id=0, **others,
    )  # fmt: skip


def appended(base, number, parent=None, ref="main", now=None):
    return apply_updates(
        base,
        [
            u.AddSnapshot(snapshot(number, parent, base)),
            u.SetSnapshotRef(ref, SnapshotRef(number)),
        ],
        now_ms=now or 1000 + number,
        base_location=f"file:/w/t/metadata/{number - 1:05}-x.metadata.json",
    )


def after(base, *updates, now=2):
    """The document after updates."""
    return apply_updates(base, updates, now_ms=now)


def read_by_pyiceberg(document):
    from pyiceberg.table.metadata import TableMetadataUtil

    return TableMetadataUtil.parse_raw(metadata_bytes(document).decode())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_has_every_field_of_its_format(version) -> None:
    made = created(version, order=ORDER, properties={"a": "b"})
    keys = {
        "format-version", "table-uuid", "location", "last-updated-ms", "last-column-id",
        "current-schema-id", "schemas", "default-spec-id", "partition-specs", "last-partition-id",
        "default-sort-order-id", "sort-orders", "properties", "current-snapshot-id", "refs",
        "snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log",
    }  # fmt: skip
    keys |= {1: {"schema", "partition-spec"}, 2: set(), 3: {"next-row-id"}}[version]
    keys |= {"last-sequence-number"} if version > 1 else set()
    assert made.keys() == keys
    assert made["location"] == "file:/w/t"
    assert (made["last-column-id"], made["last-partition-id"]) == (2, 1000)
    assert (made["default-spec-id"], made["default-sort-order-id"]) == (0, 1)
    assert made["current-snapshot-id"] == (None if version == 3 else -1)
    assert made["refs"] == {}
    assert made["metadata-log"] == []
    theirs = read_by_pyiceberg(made)
    assert theirs.current_snapshot() is None
    assert [each.name for each in theirs.schema().fields] == ["id", "name"]
    assert str(theirs.spec().fields[0].transform) == "bucket[4]"
    ours = parse_metadata(metadata_bytes(made), "x")
    assert (ours.schema, ours.spec) == (ONE, BY_ID)
    assert ours.sort_orders[1] == ORDER


def test_the_keys_come_in_the_order_of_java() -> None:
    assert list(created(2))[:6] == [
        "format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms",
        "last-column-id",
    ]  # fmt: skip


def test_an_unpartitioned_table_begins_to_count_partition_fields_at_1000() -> None:
    assert created(spec=PartitionSpec())["last-partition-id"] == 999


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_snapshot_becomes_the_head_of_main(version) -> None:
    base = created(version)
    before = copy.deepcopy(base)
    made = appended(base, 1)
    assert base == before, "the base is not changed"
    assert made["current-snapshot-id"] == 1
    assert made["refs"] == {"main": {"snapshot-id": 1, "type": "branch"}}
    assert made["snapshot-log"] == [{"timestamp-ms": 1001, "snapshot-id": 1}]
    assert made["metadata-log"] == [
        {"timestamp-ms": 1000, "metadata-file": "file:/w/t/metadata/00000-x.metadata.json"}
    ]
    assert made.get("last-sequence-number") == (None if version == 1 else 1)
    assert ("sequence-number" in made["snapshots"][0]) == (version > 1)
    assert made.get("next-row-id") == (10 if version == 3 else None)
    assert next(iter(made["snapshots"][0]["summary"])) == "operation"
    found = read_by_pyiceberg(made).current_snapshot()
    assert found is not None
    assert found.snapshot_id == 1


def test_numbers_beyond_a_double_stay_exact() -> None:
    number = (1 << 62) + 1
    made = appended(created(), number)
    assert json.loads(metadata_bytes(made))["current-snapshot-id"] == number


def test_what_icesql_does_not_know_stays() -> None:
    base = {**appended(created(), 1), "x-vendor": {"a": [1.5, None]}}
    base["snapshots"][0]["x-more"] = 7
    made = appended(base, 2, parent=1)
    assert made["x-vendor"] == {"a": [1.5, None]}
    assert made["snapshots"][0]["x-more"] == 7


def test_a_clock_behind_the_table_does_not_turn_time_back() -> None:
    made = appended(created(now=5000), 1, now=4)
    assert made["last-updated-ms"] == 5000


def test_a_snapshot_of_another_branch_leaves_main_alone() -> None:
    made = appended(appended(created(), 1), 2, ref="audit")
    assert made["current-snapshot-id"] == 1
    assert len(made["snapshot-log"]) == 1
    assert made["last-sequence-number"] == 2, "staged snapshots and branches count too"


def test_a_snapshot_of_stale_metadata_is_a_conflict() -> None:
    base = appended(created(), 5)
    with pytest.raises(CommitConflictError, match="sequence number 3 is not above 5"):
        appended(base, 3, parent=5)
    with pytest.raises(CommitConflictError, match="has a snapshot 5 already"):
        appended(base, 5)
    with pytest.raises(CommitConflictError, match="has no snapshot 77"):
        after(base, u.SetSnapshotRef("main", SnapshotRef(77)))
    third = appended(created(3), 1)
    late = snapshot(2, 1, {**third, "next-row-id": 3})
    with pytest.raises(CommitConflictError, match="row ids from 3 on are taken up to 10"):
        after(third, u.AddSnapshot(late))


def test_after_a_rollback_sequence_numbers_go_on() -> None:
    base = appended(appended(created(), 1), 2, parent=1)
    back = after(base, u.SetSnapshotRef("main", SnapshotRef(1)), now=3000)
    assert back["current-snapshot-id"] == 1
    assert back["last-sequence-number"] == 2
    assert back["snapshot-log"][-1] == {"timestamp-ms": 3000, "snapshot-id": 1}
    assert appended(back, 3, parent=1)["last-sequence-number"] == 3


def test_only_the_last_snapshot_of_one_change_is_logged() -> None:
    base = created()
    made = after(
        base,
        u.AddSnapshot(snapshot(1)),
        u.SetSnapshotRef("main", SnapshotRef(1)),
        u.AddSnapshot(snapshot(2, 1)),
        u.SetSnapshotRef("main", SnapshotRef(2)),
        now=2000,
    )
    assert [each["snapshot-id"] for each in made["snapshot-log"]] == [2]
    assert len(made["snapshots"]) == 2


def test_a_snapshot_that_is_removed_takes_the_log_before_it_along() -> None:
    base = created()
    for number in range(1, 6):
        base = appended(base, number, parent=number - 1 or None)
    base["statistics"] = [{"snapshot-id": 2, "statistics-path": "s"}]
    made = after(base, u.RemoveSnapshots((3,)), now=9000)
    assert [each["snapshot-id"] for each in made["snapshot-log"]] == [4, 5]
    assert [each["snapshot-id"] for each in made["snapshots"]] == [1, 2, 4, 5]
    assert made["snapshots"][2]["parent-snapshot-id"] == 3, "history is not rewritten"
    made = after(base, u.RemoveSnapshots((2,)), now=9000)
    assert made["statistics"] == []


def test_refs_go_with_their_snapshot_and_main_leaves_no_log_entry() -> None:
    base = appended(appended(created(), 1), 2, parent=1)
    tagged = after(base, u.SetSnapshotRef("v1", SnapshotRef(1, "tag")), now=3000)
    made = after(tagged, u.RemoveSnapshots((1,)), now=4000)
    assert list(made["refs"]) == ["main"]
    empty = after(base, u.RemoveSnapshotRef("main"), now=4000)
    assert empty["current-snapshot-id"] == -1
    assert empty["snapshot-log"] == base["snapshot-log"]


def test_a_ref_keeps_only_what_is_set_of_its_retention() -> None:
    base = appended(created(), 1)
    ref = SnapshotRef(1, "branch", max_ref_age_ms=7, min_snapshots_to_keep=2)
    made = after(base, u.SetSnapshotRef("b", ref))
    assert made["refs"]["b"] == {
        "snapshot-id": 1, "type": "branch", "max-ref-age-ms": 7, "min-snapshots-to-keep": 2,
    }  # fmt: skip
    with pytest.raises(ProgrammingError, match="cannot be a tag"):
        after(base, u.SetSnapshotRef("main", SnapshotRef(1, "tag")))


def test_schemas_that_are_there_are_used_again() -> None:
    base = created()
    two = after(base, u.AddSchema(TWO), u.SetCurrentSchema())
    assert (two["current-schema-id"], two["last-column-id"]) == (1, 3)
    back = after(two, u.AddSchema(ONE), u.SetCurrentSchema())
    assert (back["current-schema-id"], len(back["schemas"])) == (0, 2)
    assert back["last-column-id"] == 3, "ids are never given away twice"


def test_specs_and_orders_that_are_there_are_used_again() -> None:
    base = created()
    none = after(base, u.AddPartitionSpec(PartitionSpec()), u.SetDefaultSpec())
    assert (none["default-spec-id"], none["last-partition-id"]) == (1, 1000)
    back = after(none, u.AddPartitionSpec(BY_ID), u.SetDefaultSpec())
    assert (back["default-spec-id"], len(back["partition-specs"])) == (0, 2)
    ordered = after(base, u.AddSortOrder(ORDER), u.SetDefaultSortOrder())
    assert ordered["default-sort-order-id"] == 1
    plain = after(ordered, u.AddSortOrder(UNSORTED), u.SetDefaultSortOrder())
    assert (plain["default-sort-order-id"], len(plain["sort-orders"])) == (0, 2)
    again = after(plain, u.AddSortOrder(ORDER), u.SetDefaultSortOrder())
    assert (again["default-sort-order-id"], len(again["sort-orders"])) == (1, 2)


def test_version_1_keeps_copies_of_the_current_schema_and_spec() -> None:
    made = after(created(1), u.AddSchema(TWO), u.SetCurrentSchema())
    assert made["schema"] == made["schemas"][1]
    assert made["partition-spec"] == made["partition-specs"][0]["fields"]


def test_old_version_1_metadata_gets_what_it_lacks() -> None:
    old = {
        "format-version": 1,
        "location": "s3://b/t",
        "last-updated-ms": 7,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [
            {"id": 1, "name": "a", "required": False, "type": "int"}]},
        "partition-spec": [{"name": "a", "transform": "identity", "source-id": 1}],
        "properties": {},
        "current-snapshot-id": 3,
        "snapshots": [{"snapshot-id": 3, "timestamp-ms": 5, "manifest-list": "l"}],
    }  # fmt: skip
    made = apply_updates(old, [u.AssignUuid(UUID)], now_ms=8, base_location="s3://b/t/m")
    assert made["schemas"][0]["schema-id"] == 0
    assert made["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert made["last-partition-id"] == 1000
    assert made["refs"]["main"]["snapshot-id"] == 3
    second = after(made, u.UpgradeFormatVersion(2))
    assert "schema" not in second
    assert "partition-spec" not in second
    assert second["last-sequence-number"] == 0
    assert read_by_pyiceberg(second).current_snapshot().snapshot_id == 3


def test_a_format_only_goes_up() -> None:
    base = appended(created(2), 1)
    third = after(base, u.UpgradeFormatVersion(3))
    assert third["next-row-id"] == 0
    assert "first-row-id" not in third["snapshots"][0], "old snapshots have none"
    with pytest.raises(ProgrammingError, match="cannot go back to 2"):
        after(third, u.UpgradeFormatVersion(2))
    with pytest.raises(ProgrammingError, match="format version 4"):
        after(third, u.UpgradeFormatVersion(4))
    empty = after(created(2), u.UpgradeFormatVersion(3))
    assert empty["current-snapshot-id"] is None


def test_types_and_defaults_need_their_format() -> None:
    nanos = Schema((t.NestedField(1, "ts", t.TIMESTAMP_NS),))
    with pytest.raises(TypeMismatchError, match="timestamp_ns needs format version 3"):
        created(2, PartitionSpec(), schema=nanos)
    assert created(3, PartitionSpec(), schema=nanos)["format-version"] == 3
    filled = Schema((t.NestedField(1, "x", t.LONG, initial_default=7, write_default=7),))
    with pytest.raises(TypeMismatchError, match="a default needs format version 3"):
        created(2, PartitionSpec(), schema=filled)
    (field,) = created(3, PartitionSpec(), schema=filled)["schemas"][0]["fields"]
    assert (field["initial-default"], field["write-default"]) == (7, 7)


@pytest.mark.parametrize(("most", "kept"), [(None, 100), ("3", 3), ("1", 1), ("0", 1)])
def test_the_metadata_log_is_cut_by_the_new_properties(most, kept) -> None:
    base = created(properties={"write.metadata.previous-versions-max": "1000"})
    for number in range(1, 121):
        base = appended(base, number, number - 1 or None)
    assert len(base["metadata-log"]) == 120
    name = "write.metadata.previous-versions-max"
    change = u.RemoveProperties((name,)) if most is None else u.SetProperties({name: most})
    made = apply_updates(base, [change], now_ms=9, base_location="the base")
    assert len(made["metadata-log"]) == kept
    assert made["metadata-log"][-1] == {
        "timestamp-ms": base["last-updated-ms"], "metadata-file": "the base",
    }  # fmt: skip


def test_properties_are_set_and_removed_but_not_the_reserved_ones() -> None:
    base = created(properties={"a": "1", "b": "2"})
    made = after(base, u.SetProperties({"b": "3"}), u.RemoveProperties(("a", "z")))
    assert made["properties"] == {"b": "3"}
    with pytest.raises(ProgrammingError, match="format-version is not one that can be set"):
        after(base, u.SetProperties({"format-version": "3"}))


def test_what_changes_nothing_is_seen() -> None:
    base = created(properties={"a": "1"})
    same = apply_updates(base, [u.SetProperties({"a": "1"})], now_ms=99, base_location="x")
    assert not is_changed(base, same)
    other = apply_updates(base, [u.SetProperties({"a": "2"})], now_ms=99, base_location="x")
    assert is_changed(base, other)


def test_the_uuid_of_a_table_stays() -> None:
    with pytest.raises(ProgrammingError, match="it cannot change"):
        after(created(), u.AssignUuid("other"))


def test_specs_and_schemas_in_use_are_not_removed() -> None:
    base = after(created(), u.AddSchema(TWO), u.SetCurrentSchema())
    made = after(base, u.RemoveSchemas((0,)))
    assert [each["schema-id"] for each in made["schemas"]] == [1]
    with pytest.raises(ProgrammingError, match="schema-id 1 is in use"):
        after(base, u.RemoveSchemas((1,)))
    with pytest.raises(ProgrammingError, match="spec-id 0 is in use"):
        after(base, u.RemovePartitionSpecs((0,)))


def test_statistics_are_one_for_a_snapshot() -> None:
    base = appended(created(), 1)
    one = {"snapshot-id": 1, "statistics-path": "a"}
    made = after(base, u.SetStatistics(one), u.SetPartitionStatistics(one))
    made = after(made, u.SetStatistics({**one, "statistics-path": "b"}))
    assert [each["statistics-path"] for each in made["statistics"]] == ["b"]
    made = after(made, u.RemoveStatistics(1), u.RemovePartitionStatistics(1))
    assert (made["statistics"], made["partition-statistics"]) == ([], [])
