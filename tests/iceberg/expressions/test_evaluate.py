"""Predicates on single rows follow SQL's WHERE for NULL, NaN and zero."""

from __future__ import annotations

import math
import pickle

import pytest

from icesql.iceberg.expressions.evaluate import evaluate, matches
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.types import INTEGER

O = Operation  # noqa: E741
SETS = {O.IN, O.NOT_IN}
PREFIXES = {O.STARTS_WITH, O.NOT_STARTS_WITH}


def literal_for(operation):
    return frozenset({1.0}) if operation in SETS else "a" if operation in PREFIXES else 1.0


@pytest.mark.parametrize("operation", list(O))
def test_null_satisfies_is_null_alone(operation):
    assert matches(operation, literal_for(operation), None) is (operation is O.IS_NULL)


@pytest.mark.parametrize("operation", [each for each in O if each not in PREFIXES])
def test_nan_satisfies_not_null_is_nan_and_the_negated_comparisons(operation):
    expected = operation in (O.NOT_NULL, O.IS_NAN, O.NOT_EQ, O.NOT_IN)
    assert matches(operation, literal_for(operation), math.nan) is expected


def test_zeros_are_equal():
    assert matches(O.EQ, 0.0, -0.0)
    assert matches(O.IN, frozenset({0.0}), -0.0)
    assert not matches(O.LT, 0.0, -0.0)
    assert not matches(O.NOT_EQ, -0.0, 0.0)


@pytest.mark.parametrize(
    ("operation", "literal", "value", "expected"),
    [
        (O.LT, 5, 4, True),
        (O.LT, 5, 5, False),
        (O.LT_EQ, 5, 5, True),
        (O.GT, 5, 5, False),
        (O.GT_EQ, 5, 5, True),
        (O.NOT_EQ, 5, 4, True),
        (O.NOT_IN, frozenset({4, 5}), 4, False),
        (O.STARTS_WITH, "ab", "abc", True),
        (O.STARTS_WITH, "ab", "a", False),
        (O.NOT_STARTS_WITH, "ab", "a", True),
    ],
)
def test_comparisons(operation, literal, value, expected):
    assert matches(operation, literal, value) is expected


def test_and_or_and_constants():
    row = {1: 5, 2: None}
    a, b = Leaf(O.EQ, Term(1, "a"), 5), Leaf(O.EQ, Term(2, "b"), 5)
    assert evaluate(a | b, row.get)
    assert not evaluate(a & b, row.get)
    assert evaluate(ALWAYS_TRUE, row.get)
    assert not evaluate(ALWAYS_FALSE, row.get)


def test_constants_stay_constants_through_pickle():
    assert pickle.loads(pickle.dumps(ALWAYS_TRUE)) is ALWAYS_TRUE
    assert pickle.loads(pickle.dumps(ALWAYS_FALSE)) is ALWAYS_FALSE


def test_transformed_term_applies_its_transform():
    term = Term(1, "a", "truncate[10]")
    assert evaluate(Leaf(O.EQ, term, 10), {1: 17}.get, lambda _: INTEGER)


def test_what_is_no_predicate_is_refused():
    with pytest.raises(TypeError):
        evaluate(Predicate(), {}.get)
