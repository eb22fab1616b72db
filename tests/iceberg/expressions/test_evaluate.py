"""Predicates on single rows follow SQL's WHERE for NULL, NaN and zero."""

from __future__ import annotations

import math
import pickle

import pytest

from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
    evaluate,
    matches,
)
from tests.iceberg.text_forms import columns, read_predicate, read_type, read_value
from tests.tables import read_table

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


@pytest.mark.parametrize(
    ("kind", "predicate", "value", "expected"), read_table(__file__, "comparisons.tsv")
)
def test_comparisons(kind, predicate, value, expected):
    schema = columns(f"x {kind}")
    row = {1: read_value(read_type(kind), value)}
    found = evaluate(read_predicate(predicate, schema), row.get)
    assert str(found) == expected


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


def test_what_is_no_predicate_is_refused():
    with pytest.raises(TypeError):
        evaluate(Predicate(), {}.get)
