"""Projections: the table of Java's transforms, the pre-1970 correction, and soundness."""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.calendar import days_from_civil
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
    evaluate,
)
from icesql.iceberg.expressions.projection import inclusive, strict
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import Bucket, parse_transform
from icesql.iceberg.types import (
    BINARY,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    IcebergType,
    NestedField,
)
from tests.iceberg.random_predicates import predicates
from tests.iceberg.text_forms import read_predicate, read_type
from tests.tables import read_table

X = Term(1, "x")
P = Term(1000, "p")
O = Operation  # noqa: E741


def through(source: IcebergType, transform: str) -> tuple[PartitionSpec, Schema]:
    spec = PartitionSpec(0, (PartitionField((1,), 1000, transform, "p"),))
    return spec, Schema((NestedField(1, "x", source),))


def on(operation: Operation, literal: Any = None) -> Leaf:
    """A comparison of the column."""
    return Leaf(operation, X, frozenset(literal) if isinstance(literal, set) else literal)


def part(operation: Operation, literal: Any = None) -> Leaf:
    """A comparison of the partition value."""
    return Leaf(operation, P, frozenset(literal) if isinstance(literal, set) else literal)


def day(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


D2 = DecimalType(9, 2)


@pytest.mark.parametrize(
    ("source", "transform", "predicate", "may", "must"), read_table(__file__, "projections.tsv")
)
def test_projection_table(source, transform, predicate, may, must):
    spec, schema = through(read_type(source), transform)
    given = read_predicate(predicate, schema)
    result = parse_transform(transform).result_type(read_type(source))
    partition = Schema((NestedField(1000, "p", result),))
    assert inclusive(given, spec, schema) == read_predicate(may, partition)
    assert strict(given, spec, schema) == read_predicate(must, partition)


def test_several_fields_on_one_source_join_by_and_inclusively_and_by_or_strictly():
    schema = Schema((NestedField(1, "x", TIMESTAMP),))
    spec = PartitionSpec(
        0,
        (
            PartitionField((1,), 1000, "year", "y"),
            PartitionField((1,), 1001, "day", "d"),
        ),
    )
    predicate = on(O.GT_EQ, micros("2017-06-15T00:00:00"))
    year, days = Term(1000, "y"), Term(1001, "d")
    assert inclusive(predicate, spec, schema) == (
        Leaf(O.GT_EQ, year, 47) & Leaf(O.GT_EQ, days, day("2017-06-15"))
    )
    assert strict(predicate, spec, schema) == (
        Leaf(O.GT, year, 47) | Leaf(O.GT, days, day("2017-06-14"))
    )


def test_dropped_source_unpartitioned_column_and_many_sources_project_to_nothing():
    schema = Schema((NestedField(1, "x", INTEGER), NestedField(2, "y", INTEGER)))
    dropped = PartitionSpec(0, (PartitionField((9,), 1000, "identity", "p"),))
    several = PartitionSpec(0, (PartitionField((1, 2), 1000, "bucket[4]", "p"),))
    for spec in (dropped, several, PartitionSpec()):
        assert inclusive(on(O.EQ, 1), spec, schema) is ALWAYS_TRUE
        assert strict(on(O.EQ, 1), spec, schema) is ALWAYS_FALSE


def test_and_or_simplify():
    spec, schema = through(INTEGER, "identity")
    other = Leaf(O.EQ, Term(7, "other"), 1)
    assert inclusive(on(O.EQ, 1) & other, spec, schema) == part(O.EQ, 1)
    assert inclusive(on(O.EQ, 1) | other, spec, schema) is ALWAYS_TRUE
    assert strict(on(O.EQ, 1) & other, spec, schema) is ALWAYS_FALSE
    assert strict(on(O.EQ, 1) | other, spec, schema) == part(O.EQ, 1)
    assert inclusive(ALWAYS_TRUE, spec, schema) is ALWAYS_TRUE
    assert inclusive(ALWAYS_FALSE, spec, schema) is ALWAYS_FALSE


def java_truncate(value: int, width: int) -> int:
    """Truncation of a long as Java computes it, wrapping around below the least long."""
    remainder = int(struct.unpack("<q", struct.pack("<q", value))[0])
    truncated = value - ((remainder % width + width) % width)
    return (truncated + 2**63) % 2**64 - 2**63


def test_least_long_is_found_in_the_partition_that_java_wrapped_it_into():
    spec, schema = through(LONG, "truncate[10]")
    least = -(2**63)
    partition = java_truncate(least, 10)
    assert partition == 2**63 - 2
    for predicate in (on(O.LT, 5), on(O.LT_EQ, least), on(O.EQ, least), on(O.IN, {least, 7})):
        assert evaluate(inclusive(predicate, spec, schema), lambda _: partition), str(predicate)
    for predicate in (on(O.GT, 5), on(O.GT_EQ, 0), on(O.NOT_EQ, least), on(O.NOT_IN, {least, 7})):
        assert not evaluate(strict(predicate, spec, schema), lambda _: partition), str(predicate)


# ------------------------------------------------------------------ soundness

VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-30, 30) | st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-30, 30) | st.integers(-(2**63), 2**63 - 1),
    D2: st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
    STRING: st.text("ab🙂\uffff", max_size=5),
    BINARY: st.binary(max_size=3),
    DATE: st.integers(-800, 800),
    TIMESTAMP: st.integers(-800 * 24, 800 * 24).map(lambda hours: hours * 3_600_000_000)
    | st.integers(-(10**14), 10**14),
    DOUBLE: st.sampled_from([-1.5, -0.0, 0.0, 2.5, float("nan"), float("inf")]),
}
TRANSFORMS = {
    INTEGER: ["identity", "bucket[4]", "truncate[10]", "truncate[8]"],
    LONG: ["identity", "bucket[4]", "truncate[10]"],
    D2: ["identity", "bucket[4]", "truncate[7]"],
    STRING: ["identity", "bucket[4]", "truncate[1]", "truncate[3]"],
    BINARY: ["identity", "bucket[3]", "truncate[2]"],
    DATE: ["identity", "year", "month", "day", "bucket[3]"],
    TIMESTAMP: ["identity", "year", "month", "day", "hour"],
    DOUBLE: ["identity"],
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[IcebergType, str, Predicate, Any]:
    source = draw(st.sampled_from(list(VALUES)))
    transform = draw(st.sampled_from(TRANSFORMS[source]))
    return (
        source,
        transform,
        draw(predicates(source, VALUES[source])),
        draw(st.none() | VALUES[source]),
    )


def partition_of(value: Any, transform: str, source: IcebergType) -> Any:
    """The partition value as Java writes it."""
    if value is not None and transform.startswith("truncate") and source in (INTEGER, LONG):
        width = int(transform[9:-1])
        bits = 32 if source == INTEGER else 64
        truncated = value - value % width
        return (truncated + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    return parse_transform(transform).apply(value, source)


@given(cases())
@settings(max_examples=800, deadline=None)
def test_a_row_and_its_partition_agree(case):
    source, transform, predicate, value = case
    spec, schema = through(source, transform)
    partition = partition_of(value, transform, source)
    row = evaluate(predicate, lambda _: value)
    if row:
        assert evaluate(inclusive(predicate, spec, schema), lambda _: partition)
    if evaluate(strict(predicate, spec, schema), lambda _: partition):
        assert row


@given(
    st.sampled_from(["year", "month", "day", "hour"]),
    predicates(TIMESTAMP, VALUES[TIMESTAMP]),
    VALUES[TIMESTAMP],
)
@settings(max_examples=300, deadline=None)
def test_partitions_of_writers_that_rounded_to_zero_are_found(unit, predicate, value):
    spec, schema = through(TIMESTAMP, unit)
    partition = parse_transform(unit).apply(value, TIMESTAMP)
    exact = (
        value % 3_600_000_000 == 0 and parse_transform(unit).apply(value - 1, TIMESTAMP) < partition
    )
    old = partition + (partition < 0 and not exact)
    row = evaluate(predicate, lambda _: value)
    if row:
        assert evaluate(inclusive(predicate, spec, schema), lambda _: old)
    if evaluate(strict(predicate, spec, schema), lambda _: old):
        assert row


def test_helpers_agree_with_the_transforms():
    assert Bucket(16).apply(34, INTEGER) == 2017239379 % 16
    assert days_from_civil(2017, 6, 15) == day("2017-06-15")
