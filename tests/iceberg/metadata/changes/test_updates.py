"""Updates and requirements as REST catalogs take them; PyIceberg's models are the judge."""

from __future__ import annotations

import json

import pytest

from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import SortField, SortOrder, parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from tests.iceberg.metadata.changes.documents import ONE, TWO, UUID, appended, created

STATISTICS = {
    "snapshot-id": 3, "statistics-path": "p", "file-size-in-bytes": 9,
    "file-footer-size-in-bytes": 4, "blob-metadata": [],
}  # fmt: skip
ALL = [
    u.AssignUuid(UUID),
    u.UpgradeFormatVersion(2),
    u.AddSchema(Schema(ONE.fields, 0, (1,))),
    u.SetCurrentSchema(),
    u.AddPartitionSpec(PartitionSpec(0, (PartitionField((2,), 1000, "truncate[3]", "n"),))),
    u.SetDefaultSpec(4),
    u.AddSortOrder(SortOrder(1, (SortField((1,), "identity", "desc", "nulls-last"),))),
    u.SetDefaultSortOrder(),
    u.SetLocation("s3://b/t"),
    u.SetProperties({"a": "b"}),
    u.RemoveProperties(("a",)),
    u.AddSnapshot(Snapshot(3, 2, 7, 5, "l", operation="append", summary={"k": "v"}, schema_id=0)),
    u.SetSnapshotRef("main", SnapshotRef(3, max_snapshot_age_ms=9)),
    u.RemoveSnapshotRef("b"),
    u.RemoveSnapshots((1, 2)),
    u.SetStatistics(STATISTICS),
    u.RemoveStatistics(3),
    u.SetPartitionStatistics({"snapshot-id": 3, "statistics-path": "p", "file-size-in-bytes": 9}),
    u.RemovePartitionStatistics(3),
    u.RemovePartitionSpecs((1,)),
    u.RemoveSchemas((1,)),
]


@pytest.mark.parametrize("update", ALL, ids=lambda each: type(each).__name__)
def test_an_update_is_what_other_clients_send(update) -> None:
    from pydantic import TypeAdapter
    from pyiceberg.table.update import TableUpdate

    ours = json.loads(json.dumps(u.update_json(update)))
    theirs = TypeAdapter(TableUpdate).validate_json(json.dumps(ours))
    again = json.loads(theirs.model_dump_json(by_alias=True, exclude_none=True))
    assert again["action"] == ours["action"]
    # The highest id is derived by PyIceberg 0.12, and nothing of a table is.
    for key in ours.keys() - {"last-column-id"}:
        assert again[key] == ours[key], key


REQUIREMENTS = [
    u.AssertCreate(),
    u.AssertTableUuid(UUID),
    u.AssertRefSnapshotId("main", 3),
    u.AssertLastAssignedFieldId(3),
    u.AssertCurrentSchemaId(1),
    u.AssertLastAssignedPartitionId(1001),
    u.AssertDefaultSpecId(1),
    u.AssertDefaultSortOrderId(2),
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda each: type(each).__name__)
def test_a_requirement_is_what_other_clients_send(requirement) -> None:
    from pydantic import TypeAdapter
    from pyiceberg.table.update import TableRequirement

    ours = u.requirement_json(requirement)
    theirs = TypeAdapter(TableRequirement).validate_python(ours)
    assert json.loads(theirs.model_dump_json(by_alias=True)) == ours


def metadata(document):
    return parse_metadata(metadata_bytes(document), "x")


def test_each_update_asks_for_what_java_asks_for() -> None:
    base = metadata(appended(appended(created(), 1), 2, 1, ref="audit"))
    uuid = u.AssertTableUuid(UUID)
    assert u.requirements_for(None, [u.AssignUuid(UUID)]) == (u.AssertCreate(),)

    def needed(*updates):
        found = u.requirements_for(base, updates)
        assert found[0] == uuid
        return set(found[1:])

    assert needed(u.SetProperties({"a": "b"}), u.SetLocation("l")) == set()
    assert needed(u.RemoveSnapshotRef("tag")) == set()
    main = u.AssertRefSnapshotId("main", 1)
    assert needed(u.SetSnapshotRef("main", SnapshotRef(7))) == {main}
    twice = u.SetSnapshotRef("main", SnapshotRef(7)), u.SetSnapshotRef("main", SnapshotRef(8))
    assert needed(*twice) == {main}
    assert needed(u.SetSnapshotRef("new", SnapshotRef(7))) == {u.AssertRefSnapshotId("new", None)}
    assert needed(u.AddSchema(TWO), u.SetCurrentSchema()) == {
        u.AssertLastAssignedFieldId(2), u.AssertLastAssignedPartitionId(1000),
        u.AssertCurrentSchemaId(0),
    }  # fmt: skip
    assert needed(u.AddPartitionSpec(PartitionSpec()), u.SetDefaultSpec()) == {
        u.AssertLastAssignedPartitionId(1000), u.AssertCurrentSchemaId(0),
        u.AssertDefaultSpecId(0),
    }  # fmt: skip
    assert needed(u.SetDefaultSortOrder()) == {u.AssertDefaultSortOrderId(0)}
    audit = u.AssertRefSnapshotId("audit", 2)
    assert needed(u.RemoveSchemas((9,))) == {u.AssertCurrentSchemaId(0), main, audit}
    assert needed(u.RemovePartitionSpecs((9,))) == {u.AssertDefaultSpecId(0), main, audit}
    assert needed(u.AddSnapshot(Snapshot(7, manifest_list="l"))) == {u.AssertCurrentSchemaId(0)}
    assert needed(u.RemoveSnapshots((9,))) == {main, audit}, "one that was tagged meanwhile stays"
