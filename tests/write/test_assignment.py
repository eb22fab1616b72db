"""What may be stored in a column, and how what may not is told."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from icesql.errors import DataError, IntegrityError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.write.assignment import Assignment

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


@pytest.mark.parametrize(
    ("type", "values", "expected"),
    [
        (t.INTEGER, pa.array([1, None], pa.int64()), [1, None]),
        (t.INTEGER, pa.array([2.0, -0.0]), [2, 0]),
        (t.INTEGER, pa.array([D("7.00")]), [7]),
        (t.LONG, pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
        (t.LONG, pa.array([D(12)], pa.decimal128(38, 0)), [12]),
        (t.FLOAT, pa.array([0.1]), [pytest.approx(0.1)]),
        (t.FLOAT, pa.array([float("inf")]), [float("inf")]),
        (t.DOUBLE, pa.array([D("0.1")]), [0.1]),
        (t.DOUBLE, pa.array([2**53 + 1]), [float(2**53)]),
        (t.DecimalType(5, 2), pa.array([1, None], pa.int64()), [D("1.00"), None]),
        (t.DecimalType(5, 2), pa.array([D("1.500")]), [D("1.50")]),
        (t.DecimalType(5, 2), pa.array([1.1]), [D("1.10")]),
        (
            t.DecimalType(10, 2),
            pa.array([0.7, 0.07, -0.29, None, 0.0]),
            [D("0.70"), D("0.07"), D("-0.29"), None, D("0.00")],
        ),
        (t.DecimalType(10, 2), pa.array([0.7, 16777.2], pa.float32()), [D("0.70"), D("16777.20")]),
        (
            t.DecimalType(38, 20),
            pa.array([0.1, -1e15]),
            [D("0.1").quantize(D(10) ** -20), D("-1000000000000000." + "0" * 20)],
        ),
        (t.DecimalType(38, 10), pa.array([0.7], pa.float32()), [D("0.7000000000")]),
        (t.DecimalType(20, 0), pa.array([1e19]), [D(10) ** 19]),
        (t.STRING, pa.array(["a"], pa.large_string()), ["a"]),
        (t.STRING, pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (t.STRING, pa.array([UUID(int=1).bytes], pa.uuid()), [str(UUID(int=1))]),
        (t.BINARY, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (t.FixedType(2), pa.array([b"ab"]), [b"ab"]),
        (t.UUID, pa.array([str(UUID(int=5)), None]), [UUID(int=5), None]),
        (t.DATE, pa.array(["2026-01-31"]), [date(2026, 1, 31)]),
        (t.DATE, pa.array([datetime(2026, 1, 31)]), [date(2026, 1, 31)]),
        (t.TIME, pa.array(["01:02:03"]), [time(1, 2, 3)]),
        (t.TIMESTAMP, pa.array([date(2026, 1, 31)]), [datetime(2026, 1, 31)]),
        (t.TIMESTAMP, pa.array(["2026-01-31 01:02:03"]), [datetime(2026, 1, 31, 1, 2, 3)]),
        (t.TIMESTAMP, pa.array([1000], NANOS), [datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (t.BOOLEAN, pa.array([True, None]), [True, None]),
        (t.LONG, pa.nulls(2), [None, None]),
        (t.StructType((t.NestedField(2, "a", t.LONG),)), pa.nulls(1), [None]),
    ],
    ids=str,
)
def test_what_is_stored(type: t.IcebergType, values: pa.Array, expected: list[Any]) -> None:
    assert stored(type, values) == expected


@pytest.mark.parametrize(
    ("type", "values", "problem"),
    [
        (t.INTEGER, pa.array([1, 2**31, 3]), r'column "c" \(int\), row 12: 2147483648 does not'),
        (t.INTEGER, pa.array([1.5]), "row 11: 1.5 does not fit"),
        (t.INTEGER, pa.array([D("1.5")]), "row 11: 1.5 does not fit"),
        (t.INTEGER, pa.array([float("nan")]), "row 11: nan does not fit"),
        (t.LONG, pa.array([2**63], pa.uint64()), "row 11"),
        (t.FLOAT, pa.array([1.0, 1e300]), r"row 12: 1e\+300"),
        (t.DecimalType(5, 2), pa.array([1.115]), "row 11: 1.115"),
        (t.DecimalType(5, 2), pa.array([1000]), "row 11: 1000"),
        (t.DecimalType(10, 2), pa.array([0.7, 0.123]), "row 12: 0.123"),
        (t.DecimalType(10, 2), pa.array([0.123], pa.float32()), "row 11: 0.123"),
        (t.DecimalType(10, 2), pa.array([float("nan")]), "row 11: nan"),
        (t.DecimalType(38, 15), pa.array([0.1, 1e-16]), "row 12: 1e-16"),
        (t.DecimalType(5, 2), pa.array([D("1.555")]), "row 11: 1.555"),
        (t.FixedType(3), pa.array([b"abc", b"ab"]), "row 12: b'ab'"),
        (t.UUID, pa.array(["no"]), "row 11: 'no'"),
        (t.DATE, pa.array(["2026-02-30"]), "row 11: '2026-02-30'"),
        (t.DATE, pa.array([datetime(2026, 1, 31, 1)]), "row 11"),
        (t.TIMESTAMP, pa.array([1001], NANOS), "row 11"),
        (t.ListType(2, t.INTEGER), pa.array([[1], None, [], [2, 2**40]]), "row 14: 1099511627776"),
    ],
    ids=str,
)
def test_values_that_do_not_fit(type: t.IcebergType, values: pa.Array, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        stored(type, values)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (t.INTEGER, pa.array(["1"])),
        (t.BOOLEAN, pa.array([1])),
        (t.STRING, pa.array([1])),
        (t.BINARY, pa.array(["a"])),
        (t.DATE, pa.array([1])),
        (t.TIMESTAMP, pa.array([1])),
        (t.ListType(2, t.LONG), pa.array([1])),
        (t.StructType((t.NestedField(2, "a", t.LONG),)), pa.array([{"b": 1}])),
    ],
    ids=str,
)
def test_types_that_do_not_fit(type: t.IcebergType, values: pa.Array) -> None:
    with pytest.raises(TypeMismatchError, match='column "c"'):
        stored(type, values)
    given = pa.schema([("x", values.type)])
    with pytest.raises(TypeMismatchError, match='column "c"'):
        Assignment(column(type), (0,)).check(given)


def test_every_double_of_few_digits_fits() -> None:
    for scale in (1, 2, 3, 7):
        numbers = [each / 10**scale for each in range(-3000, 3000, 7)]
        found = stored(t.DecimalType(18, scale), pa.array(numbers))
        assert found == [D(repr(each)) for each in numbers]
        single = pa.array(numbers, pa.float32())
        assert stored(t.DecimalType(18, scale), single) == found


def test_times_of_the_session() -> None:
    winter, summer = datetime(2026, 1, 1, 12), datetime(2026, 7, 1, 12)
    berlin = "Europe/Berlin"
    found = stored(t.TIMESTAMPTZ, pa.array([winter, summer]), zone=berlin)
    assert [each.astimezone(UTC).hour for each in found] == [11, 10]
    instants = pa.array([winter, summer], pa.timestamp("us", "UTC"))
    assert stored(t.TIMESTAMP, instants, zone=berlin) == [
        winter.replace(hour=13),
        summer.replace(hour=14),
    ]
    assert stored(t.TIMESTAMPTZ, instants, zone=berlin) == instants.to_pylist()
    texts = pa.array(["2026-01-01 12:00:00", None])
    assert stored(t.TIMESTAMPTZ, texts, zone=berlin)[0].astimezone(UTC).hour == 11
    offset = pa.array(["2026-01-01 12:00:00+05:00"])
    assert stored(t.TIMESTAMPTZ, offset, zone=berlin)[0].astimezone(UTC).hour == 7
    # The hour that comes twice, and the one that never comes.
    odd = pa.array([datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)])
    found = [each.astimezone(UTC) for each in stored(t.TIMESTAMPTZ, odd, zone=berlin)]
    assert [(each.hour, each.minute) for each in found] == [(0, 30), (1, 0)]


def test_nulls_in_required_columns() -> None:
    with pytest.raises(IntegrityError, match='NULL in required column "c", row 12'):
        stored(t.LONG, pa.array([1, None]), required=True)
    struct = t.StructType((t.NestedField(2, "a", t.LONG, required=True),))
    assert stored(struct, pa.array([{"a": 1}, None])) == [{"a": 1}, None]
    with pytest.raises(IntegrityError, match=r'"c", row 13 \(field a\)'):
        stored(struct, pa.array([{"a": 1}, None, {"a": None}]))
    with pytest.raises(IntegrityError, match="row 12"):
        stored(t.ListType(2, t.LONG, True), pa.array([[1], [2, None]]))


def test_nested_values() -> None:
    struct = t.StructType((t.NestedField(2, "a", t.INTEGER), t.NestedField(3, "b", t.STRING)))
    given = pa.array([{"B": "x", "A": 1}, None, {"B": None, "A": 2}])
    assert stored(struct, given) == [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]
    assert stored(struct, pa.array([{"a": 1}])) == [{"a": 1, "b": None}]
    lists = pa.array([[9], [1, 2], None, [], [3]], pa.large_list(pa.int64())).slice(1)
    assert stored(t.ListType(2, t.INTEGER), lists) == [[1, 2], None, [], [3]]
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("z", 0)], [("a", 1), ("b", None)], None, []], kind).slice(1)
    assert stored(t.MapType(2, t.STRING, 3, t.INTEGER), maps) == [
        [("a", 1), ("b", None)], None, [],
    ]  # fmt: skip
    deep = t.ListType(2, t.StructType((t.NestedField(3, "l", t.ListType(4, t.LONG)),)))
    value = [[{"l": [1]}, {"l": None}], None, []]
    assert stored(deep, pa.array(value)) == value


def test_fields_called_as_engines_call_nameless_ones_go_by_name() -> None:
    swapped = t.StructType((t.NestedField(2, "v1", t.LONG), t.NestedField(3, "v0", t.LONG)))
    given = pa.array([{"v0": 1, "v1": 2}])
    assert stored(swapped, given) == [{"v1": 2, "v0": 1}]
    other = t.StructType((t.NestedField(2, "b", t.LONG), t.NestedField(3, "a", t.LONG)))
    assert stored(other, given) == [{"b": 1, "a": 2}]


def test_fields_that_differ_in_their_case_keep_their_values() -> None:
    struct = t.StructType((t.NestedField(2, "a", t.LONG), t.NestedField(3, "A", t.LONG)))
    kind = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    other = pa.struct([("A", pa.int64()), ("a", pa.int64())])
    for given in (kind, other):
        assert stored(struct, pa.array([{"a": 1, "A": 2}], given)) == [{"a": 1, "A": 2}]
    (upper,) = stored(struct, pa.array([{"A": 2}], pa.struct([("A", pa.int64())])))
    assert upper == {"a": None, "A": 2}


def test_a_field_that_is_not_given_gets_its_default() -> None:
    struct = t.StructType(
        (
            t.NestedField(2, "a", t.LONG),
            t.NestedField(3, "b", t.STRING, required=True, write_default="x"),
        )
    )
    given = pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))
    assert stored(struct, given) == [{"a": 1, "b": "x"}, None]


@pytest.mark.parametrize(
    ("type", "default", "expected"),
    [
        (t.LONG, 7, 7),
        (t.STRING, "x", "x"),
        (t.DATE, 1, date(1970, 1, 2)),
        (t.TIMESTAMPTZ, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (t.UUID, b"\x00" * 16, UUID(int=0)),
        (t.DecimalType(4, 2), D("1.50"), D("1.50")),
        (t.FixedType(2), b"ab", b"ab"),
        (t.StructType((t.NestedField(2, "a", t.LONG, write_default=3),)), {}, {"a": 3}),
        (t.LONG, t.MISSING, None),
        (t.ListType(2, t.LONG), t.MISSING, None),
    ],
    ids=str,
)
def test_defaults(type: t.IcebergType, default: Any, expected: Any) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["other"])
    made = Assignment(column(type, default=default), (None,)).convert(batch)
    assert made.column(0).to_pylist() == [expected, expected]


def test_required_without_a_value() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["other"])
    with pytest.raises(IntegrityError, match='"c" is required'):
        Assignment(column(t.LONG, required=True), (None,)).convert(batch)


def test_columns_of_type_unknown_are_in_no_file() -> None:
    schema = Schema((t.NestedField(1, "a", t.LONG), t.NestedField(2, "u", t.UNKNOWN)))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.nulls(1)], names=["a", "u"])
    assert Assignment(schema, (0, 1)).convert(batch).schema.names == ["a"]
    with pytest.raises(DataError, match='"u"'):
        Assignment(schema, (0, 0)).convert(batch)
