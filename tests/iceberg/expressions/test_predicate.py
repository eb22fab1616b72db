"""A predicate cut to some columns is implied by the whole."""

from __future__ import annotations

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Term, keep_columns

ID_5 = Leaf(Operation.EQ, Term(1, "id"), 5)
EU = Leaf(Operation.EQ, Term(2, "region"), "eu")


def test_other_columns_are_relaxed_to_true() -> None:
    assert keep_columns(ID_5 & EU, frozenset({1})) == ID_5
    assert keep_columns(ID_5 & EU, frozenset({1, 2})) == ID_5 & EU
    assert keep_columns(EU, frozenset({1})) is ALWAYS_TRUE


def test_an_or_with_another_column_says_nothing() -> None:
    assert keep_columns(ID_5 | EU, frozenset({1})) is ALWAYS_TRUE
    assert keep_columns((ID_5 | EU) & ID_5, frozenset({1})) == ID_5
