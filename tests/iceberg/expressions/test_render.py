"""EXPLAIN shows values as people write them."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Term
from icesql.iceberg.expressions.render import (
    render_partition_leaf,
    render_predicate,
    render_value,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    DecimalType,
    NestedField,
)
from icesql.iceberg.types import UUID as UUID_TYPE

O = Operation  # noqa: E741
SCHEMA = Schema(
    (NestedField(1, "d", DATE), NestedField(2, "s", STRING), NestedField(3, "n", INTEGER))
)
D, S, N = Term(1, "d"), Term(2, "s"), Term(3, "n")


@pytest.mark.parametrize(
    ("value_type", "value", "expected"),
    [
        (BOOLEAN, True, "true"),
        (INTEGER, -5, "-5"),
        (DOUBLE, 0.1, "0.1"),
        (DecimalType(38, 10), Decimal("0E-10"), "0.0000000000"),
        (DATE, 9130, "1994-12-31"),
        (DATE, -719529, "-0001-12-31"),
        (TIME, 36_000_500_000, "10:00:00.5"),
        (TIMESTAMP, 1, "1970-01-01 00:00:00.000001"),
        (TIMESTAMPTZ, -1_000_000, "1969-12-31 23:59:59+00:00"),
        (TIMESTAMPTZ_NS, 1, "1970-01-01 00:00:00.000000001+00:00"),
        (STRING, "it's", "'it''s'"),
        (STRING, "a\nb", "'a\\nb'"),
        (STRING, "x" * 60, "'" + "x" * 39 + "…'"),
        (BINARY, b"\x00\xff", "X'00ff'"),
        (BINARY, bytes(40), "X'" + "0" * 39 + "…'"),
        (UUID_TYPE, UUID(int=5).bytes, str(UUID(int=5))),
        (STRING, None, "NULL"),
        (DATE, "odd", "odd"),
    ],
)
def test_values(value_type, value, expected):
    assert render_value(value_type, value) == expected


def test_predicates_have_only_the_parentheses_they_need():
    one, two = Leaf(O.GT_EQ, D, 9131), Leaf(O.STARTS_WITH, S, "ab")
    three = Leaf(O.IS_NULL, N)
    assert render_predicate((one & two) | three, SCHEMA) == (
        "d >= 1995-01-01 AND s STARTS WITH 'ab' OR n IS NULL"
    )
    assert render_predicate(one & (two | three), SCHEMA) == (
        "d >= 1995-01-01 AND (s STARTS WITH 'ab' OR n IS NULL)"
    )
    assert render_predicate(ALWAYS_TRUE, SCHEMA) == "true"


def test_long_lists_show_their_least_literals():
    text = render_predicate(Leaf(O.IN, N, frozenset(range(100))), SCHEMA)
    assert text == "n IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 90 more)"


def test_transformed_terms_and_unknown_columns_are_shown():
    assert render_predicate(Leaf(O.EQ, Term(1, "d", "month"), 300), SCHEMA) == "month(d) = 1995-01"
    assert render_predicate(Leaf(O.EQ, Term(1, "d", "bucket[4]"), 3), SCHEMA) == "bucket[4](d) = 3"
    assert render_predicate(Leaf(O.EQ, Term(99, "gone"), "a"), SCHEMA) == "gone = 'a'"


def test_partition_values_are_shown_by_their_transform():
    spec = PartitionSpec(0, (
        PartitionField((1,), 1000, "month", "d_month"),
        PartitionField((2,), 1001, "truncate[2]", "s_trunc"),
    ))  # fmt: skip
    month, start = (
        Leaf(O.LT_EQ, Term(1000, "d_month"), 300),
        Leaf(O.EQ, Term(1001, "s_trunc"), "ab"),
    )
    assert render_partition_leaf(month, spec, SCHEMA) == "d_month <= 1995-01"
    assert render_partition_leaf(start, spec, SCHEMA) == "s_trunc = 'ab'"
