"""Predicates from Hypothesis: any comparison that a type supports, joined by AND and OR."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from icesql.iceberg.expressions.predicate import Leaf, Operation, Predicate, Term
from icesql.iceberg.types import STRING, IcebergType, is_floating

SETS = {Operation.IN, Operation.NOT_IN}
PREFIXES = {Operation.STARTS_WITH, Operation.NOT_STARTS_WITH}
OF_NAN = {Operation.IS_NAN, Operation.NOT_NAN}
UNARY = {Operation.IS_NULL, Operation.NOT_NULL, *OF_NAN}
X = Term(1, "x")


@st.composite
def leaves(
    draw: st.DrawFn, kind: IcebergType, values: st.SearchStrategy[Any], *terms: Term
) -> Leaf:
    """A comparison of one of the terms, which are of type ``kind``, with some of ``values``."""
    other = set() if kind == STRING else PREFIXES
    other = other if is_floating(kind) else other | OF_NAN
    operation = draw(st.sampled_from([each for each in Operation if each not in other]))
    term = draw(st.sampled_from(terms or (X,)))
    literals = values.filter(lambda value: value == value)
    if operation in SETS:
        return Leaf(operation, term, draw(st.frozensets(literals, min_size=2, max_size=4)))
    return Leaf(operation, term, None if operation in UNARY else draw(literals))


@st.composite
def predicates(
    draw: st.DrawFn, kind: IcebergType, values: st.SearchStrategy[Any], *terms: Term, most: int = 2
) -> Predicate:
    """Up to ``most`` comparisons."""
    predicate: Predicate = draw(leaves(kind, values, *terms))
    for _ in range(draw(st.integers(0, most - 1))):
        other = draw(leaves(kind, values, *terms))
        predicate = predicate & other if draw(st.booleans()) else predicate | other
    return predicate
