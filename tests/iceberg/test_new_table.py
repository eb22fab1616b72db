"""Fresh ids, partition specs, sort orders and the rules of schemas for a new table."""

from __future__ import annotations

import json

import pytest

from icesql import errors
from icesql.errors import ProgrammingError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.rules import check_schema, least_format
from icesql.iceberg.evolution.schema_changes import with_fresh_ids
from icesql.iceberg.evolution.spec_changes import (
    PartitionRequest,
    SortRequest,
    new_sort_order,
    new_spec,
)
from icesql.iceberg.schema import Schema
from tests.iceberg.text_forms import columns
from tests.tables import read_table

F = t.NestedField


def test_a_level_is_numbered_before_what_is_in_it() -> None:
    inner = t.StructType((F(-1, "c", t.LONG), F(-2, "d", t.STRING)))
    given = Schema((F(7, "a", t.LONG, True), F(8, "b", inner), F(9, "e", t.DATE)), 4, (7,))
    made = with_fresh_ids(given)
    assert made.name_by_id == {1: "a", 2: "b", 4: "b.c", 5: "b.d", 3: "e"}
    assert (made.schema_id, made.identifier_field_ids) == (0, (1,))


def test_elements_keys_and_values_are_numbered_too() -> None:
    point = t.StructType((F(0, "x", t.LONG), F(0, "y", t.LONG)))
    given = Schema((F(0, "l", t.ListType(0, point)), F(0, "m", t.MapType(0, t.STRING, 0, point))))
    names = with_fresh_ids(given).name_by_id
    assert names == {
        1: "l", 3: "l.element", 4: "l.element.x", 5: "l.element.y",
        2: "m", 6: "m.key", 7: "m.value", 8: "m.value.x", 9: "m.value.y",
    }  # fmt: skip


def test_pyiceberg_gives_the_same_ids() -> None:
    from pyiceberg.schema import Schema as Theirs
    from pyiceberg.schema import assign_fresh_schema_ids

    from icesql.iceberg.metadata.schema_json import parse_schema
    from icesql.iceberg.metadata.writing import schema_json

    deep = t.StructType((F(11, "x", t.ListType(12, t.StructType((F(13, "z", t.UUID),)))),))
    given = Schema(
        (F(1, "a", deep), F(2, "m", t.MapType(3, t.StructType((F(5, "k", t.LONG),)), 4, deep)))
    )
    # Ids only have to differ for PyIceberg to take the schema.
    given = with_fresh_ids(given, 50)
    theirs = assign_fresh_schema_ids(Theirs.model_validate(schema_json(given)))
    assert (
        parse_schema(theirs.model_dump(by_alias=True, mode="json")).fields
        == with_fresh_ids(given).fields
    )


SCHEMA = Schema(
    (
        F(1, "id", t.LONG, True), F(2, "ts", t.TIMESTAMPTZ), F(3, "name", t.STRING),
        F(4, "p", t.StructType((F(5, "x", t.LONG), F(6, "d", t.DOUBLE)))),
        F(7, "l", t.ListType(8, t.LONG)), F(9, "Day", t.DATE),
    )
)  # fmt: skip


def test_a_spec_is_numbered_from_1000_and_named_by_its_transforms() -> None:
    spec = new_spec(
        SCHEMA,
        [
            PartitionRequest("ts", "day"), PartitionRequest("id", "bucket[16]"),
            PartitionRequest("name", "truncate[4]", "n"), PartitionRequest("p.x"),
            PartitionRequest("DAY", "void"),
        ],
    )  # fmt: skip
    assert [(f.source_id, f.field_id, f.transform, f.name) for f in spec.fields] == [
        (2, 1000, "day", "ts_day"), (1, 1001, "bucket[16]", "id_bucket"),
        (3, 1002, "truncate[4]", "n"), (5, 1003, "identity", "p.x"), (9, 1004, "void", "Day_null"),
    ]  # fmt: skip


@pytest.mark.parametrize(("requests", "error", "told"), read_table(__file__, "refused_specs.tsv"))
def test_a_spec_that_no_table_can_have_is_refused(requests, error, told) -> None:
    with pytest.raises(getattr(errors, error), match=told):
        new_spec(SCHEMA, [PartitionRequest(*each) for each in json.loads(requests)])


def test_fixed_bytes_are_partitioned_by_buckets_only() -> None:
    schema = Schema((F(1, "f", t.FixedType(3)),))
    assert new_spec(schema, [PartitionRequest("f", "bucket[2]")]).fields
    with pytest.raises(TypeMismatchError, match="in different ways"):
        new_spec(schema, [PartitionRequest("f")])
    assert new_sort_order(schema, [SortRequest("f")]).fields, "no manifest holds what rows are in"


def test_two_buckets_of_one_column_may_stand_side_by_side() -> None:
    spec = new_spec(
        SCHEMA, [PartitionRequest("id", "bucket[2]"), PartitionRequest("id", "bucket[3]", "b3")]
    )
    assert len(spec.fields) == 2


def test_a_sort_order_puts_nulls_where_java_does() -> None:
    order = new_sort_order(SCHEMA, [SortRequest("id"), SortRequest("ts", "day", "desc")])
    assert order.order_id == 1
    assert [(f.transform, f.direction, f.null_order) for f in order.fields] == [
        ("identity", "asc", "nulls-first"), ("day", "desc", "nulls-last"),
    ]  # fmt: skip
    assert new_sort_order(SCHEMA, []).order_id == 0


@pytest.mark.parametrize(
    ("described", "identifiers", "told"), read_table(__file__, "refused_schemas.tsv")
)
def test_a_schema_that_no_table_can_have_is_refused(described, identifiers, told) -> None:
    fields = columns(described).fields
    with pytest.raises(ProgrammingError, match=told):
        check_schema(Schema(fields, 0, tuple(json.loads(identifiers))), 3)


@pytest.mark.parametrize(
    "type", [t.TIMESTAMP_NS, t.VARIANT, t.UNKNOWN, t.GeometryType(), t.GeographyType()]
)
def test_types_of_version_3_are_known(type) -> None:
    deep = Schema((F(1, "l", t.ListType(2, t.StructType((F(3, "x", type),)))),))
    assert least_format(deep) == 3
    assert least_format(SCHEMA) == 1
    check_schema(deep, 3)
    with pytest.raises(TypeMismatchError, match=r'"l\.element\.x": type .* needs format version 3'):
        check_schema(deep, 2)
    with pytest.raises(TypeMismatchError, match="has no default"):
        check_schema(Schema((F(1, "g", t.VARIANT, write_default=b""),)), 3)
