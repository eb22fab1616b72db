"""Partition specs from JSON and the types of their values."""

from __future__ import annotations

import pytest

from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.partitioning import (
    PartitionField,
    PartitionSpec,
    parse_spec,
    parse_spec_fields,
    partition_types,
)
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import DATE, INTEGER, STRING, TIMESTAMP, UNKNOWN, NestedField, StructType

SCHEMA = Schema(
    (
        NestedField(1, "ts", TIMESTAMP),
        NestedField(2, "name", STRING),
        NestedField(3, "place", StructType((NestedField(4, "city", STRING),))),
    )
)


def test_specs_keep_their_fields_in_order() -> None:
    spec = parse_spec(
        {
            "spec-id": 3,
            "fields": [
                {"source-id": 4, "field-id": 1001, "name": "city", "transform": "identity"},
                {"source-id": 1, "field-id": 1000, "name": "d", "transform": "day"},
            ],
        }
    )
    assert spec == PartitionSpec(
        3,
        (
            PartitionField((4,), 1001, "identity", "city"),
            PartitionField((1,), 1000, "day", "d"),
        ),
    )
    assert partition_types(spec, SCHEMA) == (STRING, DATE)


def test_v1_fields_without_ids_count_from_1000() -> None:
    fields = parse_spec_fields(
        [
            {"source-id": 1, "name": "y", "transform": "year"},
            {"source-id": 2, "name": "b", "transform": "bucket[16]"},
        ]
    )
    assert [each.field_id for each in fields] == [1000, 1001]
    assert partition_types(PartitionSpec(0, fields), SCHEMA) == (INTEGER, INTEGER)


def test_transforms_of_several_columns_keep_all_of_them() -> None:
    (field,) = parse_spec_fields(
        [{"source-ids": [1, 2], "field-id": 1000, "name": "x", "transform": "zorder"}]
    )
    assert field.source_ids == (1, 2)
    assert partition_types(PartitionSpec(0, (field,)), SCHEMA) == (UNKNOWN,)


@pytest.mark.parametrize(
    ("transform", "source", "expected"),
    [
        ("identity", 99, UNKNOWN),
        ("truncate[4]", 99, UNKNOWN),
        ("void", 99, UNKNOWN),
        ("hour", 99, INTEGER),
        ("day", 99, DATE),
        ("truncate[4]", 2, STRING),
        ("Truncate[4]", 2, STRING),
        ("void", 1, TIMESTAMP),
        ("hilbert", 1, UNKNOWN),
    ],
)
def test_types_where_the_source_is_dropped_or_the_transform_unknown(
    transform: str, source: int, expected: object
) -> None:
    spec = PartitionSpec(0, (PartitionField((source,), 1000, transform, "p"),))
    assert partition_types(spec, SCHEMA) == (expected,)


def test_only_void_transforms_leave_a_spec_unpartitioned() -> None:
    assert PartitionSpec(1, (PartitionField((1,), 1000, "VOID", "p"),)).is_unpartitioned
    assert not PartitionSpec(1, (PartitionField((1,), 1000, "year", "p"),)).is_unpartitioned


@pytest.mark.parametrize(
    "json",
    [
        [],
        {"fields": []},
        {"spec-id": "one", "fields": []},
        {"spec-id": 1, "fields": {}},
        {"spec-id": 1, "fields": [1]},
        {"spec-id": 1, "fields": [{"source-id": 1, "name": "x"}]},
        {"spec-id": 1, "fields": [{"source-ids": [], "name": "x", "transform": "year"}]},
        {"spec-id": 1, "fields": [{"source-id": True, "name": "x", "transform": "year"}]},
    ],
)
def test_malformed_specs_are_refused(json: object) -> None:
    with pytest.raises(Malformed):
        parse_spec(json)
