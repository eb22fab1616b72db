"""What may be stored in a column, and how what may not is told."""

from __future__ import annotations

import json
from ast import literal_eval
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icesql import errors
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value
from icesql.write.assignment import Assignment
from tests.columns import array, columns, type_of
from tests.tables import read_table

D = Decimal
NANOS = pa.timestamp("ns")


def column(type: t.IcebergType, *, required: bool = False, default: Any = t.MISSING) -> Schema:
    return Schema((t.NestedField(1, "c", type, required, write_default=default),))


def stored(type: t.IcebergType, values: pa.Array, *, required: bool = False, zone: str = "UTC"):
    batch = pa.RecordBatch.from_arrays([values], names=["x"])
    made = Assignment(column(type, required=required), (0,), zone).convert(batch, 10)
    assert made.schema.field(0).name == "c"
    assert made.schema.field(0).metadata == {b"PARQUET:field_id": b"1"}
    made.validate(full=True)
    return made.column(0).to_pylist()


@pytest.mark.parametrize(("type", "kind", "values", "expected"), read_table(__file__, "stored.tsv"))
def test_what_is_stored(type: str, kind: str, values: str, expected: str) -> None:
    assert repr(stored(type_of(type), array(kind, literal_eval(values)))) == expected


@pytest.mark.parametrize(
    ("type", "kind", "values", "problem", "error"), read_table(__file__, "misfits.tsv")
)
def test_what_does_not_fit(type: str, kind: str, values: str, problem: str, error: str) -> None:
    given, wanted = array(kind, literal_eval(values)), type_of(type.removesuffix("!"))
    with pytest.raises(getattr(errors, error), match=problem):
        stored(wanted, given, required=type.endswith("!"))
    if error == "TypeMismatchError":
        with pytest.raises(errors.TypeMismatchError, match=problem):
            Assignment(column(wanted), (0,)).check(pa.schema([("x", given.type)]))


def test_a_dictionary_is_its_values() -> None:
    texts = ["a", None, "a"]
    assert stored(t.STRING, pa.array(texts).dictionary_encode()) == texts


def test_every_double_of_few_digits_fits() -> None:
    for scale in (1, 2, 3, 7):
        numbers = [each / 10**scale for each in range(-3000, 3000, 7)]
        found = stored(t.DecimalType(18, scale), pa.array(numbers))
        assert found == [D(repr(each)) for each in numbers]
        single = pa.array(numbers, pa.float32())
        assert stored(t.DecimalType(18, scale), single) == found


@pytest.mark.parametrize(
    ("type", "kind", "values", "expected"), read_table(__file__, "session_times.tsv")
)
def test_times_of_the_session(type: str, kind: str, values: str, expected: str) -> None:
    found = stored(type_of(type), array(kind, literal_eval(values)), zone="Europe/Berlin")
    plain = [each and each.astimezone(UTC) if type == "timestamptz" else each for each in found]
    assert " ".join(str(each).replace(" ", "T") for each in plain) == expected


def test_slices_of_nested_values() -> None:
    lists = pa.array([[9], [1, 2], None, [], [3]], pa.large_list(pa.int64())).slice(1)
    assert stored(type_of("list<2 int>"), lists) == [[1, 2], None, [], [3]]
    maps = array("map<1 string, 2 long>", [[("z", 0)], [("a", 1), ("b", None)], None, []]).slice(1)
    found = stored(type_of("map<2 string, 3 int>"), maps)
    assert found == [[("a", 1), ("b", None)], None, []]


def test_a_field_that_is_not_given_gets_its_default() -> None:
    struct = t.StructType(
        (
            t.NestedField(2, "a", t.LONG),
            t.NestedField(3, "b", t.STRING, required=True, write_default="x"),
        )
    )
    given = pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))
    assert stored(struct, given) == [{"a": 1, "b": "x"}, None]


def filled(schema: Schema) -> list[Any]:
    """The only column of two rows that do not give it."""
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["other"])
    found: list[Any] = Assignment(schema, (None,)).convert(batch).column(0).to_pylist()
    return found


@pytest.mark.parametrize(("type", "default", "expected"), read_table(__file__, "defaults.tsv"))
def test_defaults(type: str, default: str, expected: str) -> None:
    kind = type_of(type)
    value = parse_single_value(kind, json.loads(default)) if default else t.MISSING
    assert repr(filled(column(kind, default=value))) == f"[{expected}, {expected}]"


def test_defaults_of_an_instant_and_within_a_struct() -> None:
    assert filled(column(t.TIMESTAMPTZ, default=0)) == [datetime(1970, 1, 1, tzinfo=UTC)] * 2
    struct = t.StructType((t.NestedField(2, "a", t.LONG, write_default=3),))
    assert filled(column(struct, default={})) == [{"a": 3}] * 2


def test_required_without_a_value() -> None:
    with pytest.raises(errors.IntegrityError, match='"c" is required'):
        filled(column(t.LONG, required=True))


def test_columns_of_type_unknown_are_in_no_file() -> None:
    schema = Schema(columns("1 a long, 2 u unknown"))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.nulls(1)], names=["a", "u"])
    assert Assignment(schema, (0, 1)).convert(batch).schema.names == ["a"]
    with pytest.raises(errors.DataError, match='"u"'):
        Assignment(schema, (0, 0)).convert(batch)
