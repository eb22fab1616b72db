"""Partition fields are added and dropped; their ids are never given to others."""

from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.spec_changes import PartitionRequest as R
from icesql.iceberg.evolution.spec_changes import SpecHistory, changed_spec
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema

SCHEMA = Schema(
    (
        t.NestedField(1, "id", t.LONG),
        t.NestedField(2, "c", t.STRING),
        t.NestedField(3, "ts", t.TIMESTAMP),
    )
)
BY_C = PartitionSpec(0, (PartitionField((2,), 1000, "identity", "c"),))


def history(*specs: PartitionSpec, version: int = 2) -> SpecHistory:
    by_id = {each.spec_id: each for each in specs or (BY_C,)}
    last = max((f.field_id for each in by_id.values() for f in each.fields), default=999)
    return SpecHistory(version, SCHEMA, by_id[max(by_id)], by_id, last)


def told(spec: PartitionSpec) -> list[tuple[int, str, str]]:
    return [(each.field_id, each.transform, each.name) for each in spec.fields]


def test_a_field_gets_the_next_id_and_a_name_with_its_width() -> None:
    made = changed_spec(
        history(), add=[R("id", "bucket[16]"), R("ts", "day"), R("c", "truncate[4]", "t")]
    )
    assert told(made) == [
        (1000, "identity", "c"), (1001, "bucket[16]", "id_bucket_16"), (1002, "day", "ts_day"),
        (1003, "truncate[4]", "t"),
    ]  # fmt: skip


def test_a_dropped_field_is_gone_and_comes_back_with_its_id() -> None:
    dropped = changed_spec(history(), drop=["c"])
    assert told(dropped) == []
    later = PartitionSpec(1, (PartitionField((1,), 1001, "bucket[2]", "b"),))
    assert told(changed_spec(history(BY_C, later), add=[R("c")])) == [
        (1001, "bucket[2]", "b"),
        (1000, "identity", "c"),
    ]
    assert told(changed_spec(history(BY_C, later), add=[R("c", "identity", "again")]))[1] == (
        1000,
        "identity",
        "again",
    )


def test_version_1_keeps_a_void_field_at_its_place() -> None:
    dropped = changed_spec(history(version=1), drop=["c"])
    assert told(dropped) == [(1000, "void", "c")]
    later = PartitionSpec(1, dropped.fields)
    assert told(changed_spec(history(BY_C, later, version=1), add=[R("c")])) == [
        (1000, "void", "c_1000"), (1001, "identity", "c"),
    ]  # fmt: skip


def test_a_field_is_named_by_its_transform_too() -> None:
    assert told(changed_spec(history(), drop=[R("c")], add=[R("ts", "hour")])) == [
        (1001, "hour", "ts_hour")
    ]
    assert told(changed_spec(history(), drop=["c"], add=[R("c")])) == [(1000, "identity", "c")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": ["d"]}, 'not partitioned by "d"'),
        ({"drop": [R("id", "bucket[3]")]}, r"not partitioned by \"bucket\[3\]\(id\)\""),
        ({"add": [R("c")]}, "two partition fields|redundant"),
        ({"add": [R("ts", "day"), R("ts", "hour")]}, "redundant"),
        ({"add": [R("id", "bucket[2]", "c")]}, "name of a column"),
        ({"add": [R("id", "bucket[2]", "x"), R("id", "bucket[3]", "X")]}, "two partition fields"),
    ],
)  # fmt: skip
def test_a_change_that_no_table_can_have_is_refused(change, message) -> None:
    with pytest.raises(ProgrammingError, match=message):
        changed_spec(history(), **change)
