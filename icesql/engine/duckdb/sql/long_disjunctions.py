"""Long chains of OR in pieces that DuckDB's optimizer looks at one by one.

DuckDB looks for what all terms of an OR have in common in a time that grows with the square of
their number: 3,000 terms of ``(a = 1 AND b > 2)`` took 16 s of a query of 0.3 s.
"""

from __future__ import annotations

from typing import Final

from icesql.sql.trees import exp

LONGEST: Final = 128
PIECE: Final = 64


def with_short_disjunctions(tree: exp.Expr) -> exp.Expr:
    """``tree``, or where an OR of it is long a copy in which it is one of pieces.

    A piece is ``coalesce(piece, NULL)``, the same value behind a function that the optimizer does
    not look through.
    """
    if not any(map(_is_long, _chains(tree))):
        return tree
    tree = tree.copy()
    for chain in [each for each in _chains(tree) if _is_long(each)]:
        terms = [term.copy() for term in chain.flatten(unnest=False)]
        pieces: list[exp.Expr] = [
            exp.Coalesce(this=_any_of(terms[start : start + PIECE]), expressions=[exp.null()])
            for start in range(0, len(terms), PIECE)
        ]
        chain.replace(exp.Paren(this=_any_of(pieces)))
    return tree


def _chains(tree: exp.Expr) -> list[exp.Expr]:
    """The topmost node of each chain of OR."""
    return [node for node in tree.find_all(exp.Or) if not isinstance(node.parent, exp.Or)]


def _is_long(chain: exp.Expr) -> bool:
    left = chain
    for _ in range(LONGEST):
        if not isinstance(left, exp.Or):
            return False
        left = left.this
    return True


def _any_of(terms: list[exp.Expr]) -> exp.Expr:
    whole = terms[0]
    for term in terms[1:]:
        whole = exp.Or(this=whole, expression=term)
    return whole
