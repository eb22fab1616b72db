"""Partition specs from JSON and the types of their values."""

from __future__ import annotations

import json

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
from tests.iceberg.text_forms import read_type
from tests.tables import read_table

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
    ("transform", "source", "expected"), read_table(__file__, "partition_types.tsv")
)
def test_types_where_the_source_is_dropped_or_the_transform_unknown(
    transform: str, source: str, expected: str
) -> None:
    spec = PartitionSpec(0, (PartitionField((int(source),), 1000, transform, "p"),))
    assert partition_types(spec, SCHEMA) == (read_type(expected),)


def test_only_void_transforms_leave_a_spec_unpartitioned() -> None:
    assert PartitionSpec(1, (PartitionField((1,), 1000, "VOID", "p"),)).is_unpartitioned
    assert not PartitionSpec(1, (PartitionField((1,), 1000, "year", "p"),)).is_unpartitioned


@pytest.mark.parametrize("form", [form for (form,) in read_table(__file__, "malformed_specs.tsv")])
def test_malformed_specs_are_refused(form: str) -> None:
    with pytest.raises(Malformed):
        parse_spec(json.loads(form))
