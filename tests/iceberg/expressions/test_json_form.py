"""Predicates as JSON, against the forms that Java's ``ExpressionParser`` writes and reads."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from icesql.iceberg import types as t
from icesql.iceberg.expressions.json_form import parse_predicate, predicate_json
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Leaf, Operation, Term
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.schema import Schema

SCHEMA = Schema(
    (
        t.NestedField(1, "i", t.LONG),
        t.NestedField(2, "s", t.STRING),
        t.NestedField(3, "d", t.DoubleType()),
        t.NestedField(4, "n", t.DecimalType(9, 2)),
        t.NestedField(5, "u", t.UUIDType()),
        t.NestedField(6, "b", t.BinaryType()),
        t.NestedField(7, "day", t.DateType()),
        t.NestedField(8, "ts", t.TimestampType()),
        t.NestedField(9, "tz", t.TIMESTAMPTZ),
        t.NestedField(10, "ns", t.TimestampNanoType()),
        t.NestedField(11, "clock", t.TimeType()),
        t.NestedField(12, "st", t.StructType((t.NestedField(13, "in", t.LONG),))),
        t.NestedField(14, "a.b", t.LONG),
        t.NestedField(15, "l", t.ListType(16, t.LONG, True)),
    )
)


def leaf(operation: Operation, field_id: int, literal: Any = None) -> Leaf:
    return Leaf(operation, Term(field_id, SCHEMA.name_by_id[field_id]), literal)


@pytest.mark.parametrize(
    ("predicate", "json"),
    [
        (leaf(Operation.EQ, 1, 5), {"type": "eq", "term": "i", "value": 5}),
        (leaf(Operation.NOT_NULL, 2), {"type": "not-null", "term": "s"}),
        (
            leaf(Operation.IN, 2, frozenset({"x", "ü"})),
            {"type": "in", "term": "s", "values": ["x", "ü"]},
        ),
        (leaf(Operation.STARTS_WITH, 2, "a"), {"type": "starts-with", "term": "s", "value": "a"}),
        (leaf(Operation.LT, 3, 1.5), {"type": "lt", "term": "d", "value": 1.5}),
        (leaf(Operation.EQ, 4, Decimal("1.5")), {"type": "eq", "term": "n", "value": "1.50"}),
        (
            leaf(Operation.EQ, 5, bytes(range(16))),
            {"type": "eq", "term": "u", "value": "00010203-0405-0607-0809-0a0b0c0d0e0f"},
        ),
        (leaf(Operation.GT, 7, -1), {"type": "gt", "term": "day", "value": "1969-12-31"}),
        (
            leaf(Operation.GT_EQ, 8, -1),
            {"type": "gt-eq", "term": "ts", "value": "1969-12-31T23:59:59.999999"},
        ),
        (
            leaf(Operation.GT_EQ, 9, 0),
            {"type": "gt-eq", "term": "tz", "value": "1970-01-01T00:00:00.000000+00:00"},
        ),
        (
            leaf(Operation.LT_EQ, 10, 1),
            {"type": "lt-eq", "term": "ns", "value": "1970-01-01T00:00:00.000000001"},
        ),
        (
            leaf(Operation.NOT_EQ, 11, 3_600_000_001),
            {"type": "not-eq", "term": "clock", "value": "01:00:00.000001"},
        ),
        (leaf(Operation.EQ, 13, 7), {"type": "eq", "term": "st.in", "value": 7}),
        (
            leaf(Operation.EQ, 1, 5) | leaf(Operation.IS_NULL, 2),
            {
                "type": "or",
                "left": {"type": "eq", "term": "i", "value": 5},
                "right": {"type": "is-null", "term": "s"},
            },
        ),
        (ALWAYS_TRUE, True),
        (ALWAYS_FALSE, False),
    ],
)
def test_there_and_back(predicate: Any, json: Any) -> None:
    assert predicate_json(predicate, SCHEMA) == json
    assert parse_predicate(json, SCHEMA) == predicate


@pytest.mark.parametrize(
    "untold",
    [
        leaf(Operation.EQ, 6, b"x"),
        leaf(Operation.EQ, 14, 1),
        leaf(Operation.EQ, 16, 1),
        leaf(Operation.LT, 5, bytes(16)),
        leaf(Operation.GT, 7, 10_000_000),
        leaf(Operation.EQ, 3, float("inf")),
        leaf(Operation.IN, 3, frozenset({0.0, 1.0})),
        leaf(Operation.EQ, 2, "\ud800"),
        leaf(Operation.NOT_NAN, 1),
        Leaf(Operation.EQ, Term(7, "day", "year"), 50),
    ],
)
def test_what_has_no_form_is_left_out(untold: Leaf) -> None:
    """Less is pruned then: a conjunct goes, a disjunction goes whole."""
    known = leaf(Operation.EQ, 1, 5)
    assert predicate_json(untold & known, SCHEMA) == predicate_json(known, SCHEMA)
    assert predicate_json(untold | known, SCHEMA) is True


def test_zeros_are_one_number() -> None:
    """Java orders -0.0 before 0.0 and would skip the files of one when asked for the other."""
    for zero in (0.0, -0.0):
        equal = predicate_json(leaf(Operation.EQ, 3, zero), SCHEMA)
        assert (equal["left"]["type"], str(equal["left"]["value"])) == ("gt-eq", "-0.0")
        assert (equal["right"]["type"], str(equal["right"]["value"])) == ("lt-eq", "0.0")
        for operation, value in (
            (Operation.GT_EQ, "-0.0"),
            (Operation.LT_EQ, "0.0"),
            (Operation.GT, "0.0"),
            (Operation.LT, "-0.0"),
        ):
            assert str(predicate_json(leaf(operation, 3, zero), SCHEMA)["value"]) == value


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ({"type": "literal", "value": False}, "false"),
        ({"type": "true"}, "true"),
        ({"type": "LT_EQ", "term": "i", "value": {"type": "literal", "value": 3}}, "i <= 3"),
        ({"type": "eq", "term": {"type": "reference", "term": "i"}, "value": 3}, "i = 3"),
        ({"type": "not", "child": {"type": "lt", "term": "i", "value": 3}}, "i >= 3"),
        ({"type": "not", "child": {"type": "is-null", "term": "s"}}, "s IS NOT NULL"),
    ],
)
def test_other_spellings_of_servers(json: Any, text: str) -> None:
    assert str(parse_predicate(json, SCHEMA)) == text


@pytest.mark.parametrize(
    "json",
    [
        None,
        3,
        {"type": "apply"},
        {"type": "eq", "term": "nope", "value": 1},
        {"type": "eq", "term": "i", "value": "x"},
        {"type": "eq", "term": "i"},
        {"type": "in", "term": "i", "values": 3},
        {"type": "in", "term": "i", "values": [None]},
        {"type": "eq", "term": {"type": "transform", "transform": "year", "term": "ts"}},
        {"type": "and", "left": True},
        {"type": "eq", "term": "l", "value": 1},
    ],
)
def test_what_is_no_predicate_is_told(json: Any) -> None:
    with pytest.raises(Malformed):
        parse_predicate(json, SCHEMA)
