"""A delete file is pruned only by the filter's conditions on its equality columns."""

from __future__ import annotations

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Term
from icesql.scan.deletes.delete_pruning import relaxed_to

ID_5 = Leaf(Operation.EQ, Term(1, "id"), 5)
EU = Leaf(Operation.EQ, Term(2, "region"), "eu")


def test_other_columns_are_relaxed_to_true() -> None:
    assert relaxed_to(ID_5 & EU, frozenset({1})) == ID_5
    assert relaxed_to(ID_5 & EU, frozenset({1, 2})) == ID_5 & EU
    assert relaxed_to(EU, frozenset({1})) is ALWAYS_TRUE


def test_an_or_with_another_column_says_nothing() -> None:
    assert relaxed_to(ID_5 | EU, frozenset({1})) is ALWAYS_TRUE
    assert relaxed_to((ID_5 | EU) & ID_5, frozenset({1})) == ID_5
