"""Conditions on the first characters of a string column: LIKE, starts_with() and left()."""

from __future__ import annotations

from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term
from icesql.query.pushdown.comparison import any_of


def like(term: Term, pattern: str, escape: str | None, *, negated: bool) -> Predicate | None:
    """The predicate of ``term [NOT] LIKE pattern [ESCAPE escape]``; None for an invalid pattern.

    >>> implied("name LIKE 'ab%' AND name LIKE 'a%z' AND name LIKE 'abc'")
    name STARTS WITH 'ab' AND name STARTS WITH 'a' AND name = 'abc'
    >>> implied("name NOT LIKE 'ab%'")
    name NOT STARTS WITH 'ab'
    >>> implied("name NOT LIKE 'a%z'")
    name IS NOT NULL
    """
    read = _read_pattern(pattern, escape)
    if read is None:
        return None
    prefix, rest = read
    if not rest:
        return Leaf(Operation.NOT_EQ if negated else Operation.EQ, term, prefix)
    if set(rest) == {"%"}:
        return starts_with(term, prefix, negated=negated)
    if prefix and not negated:
        return Leaf(Operation.STARTS_WITH, term, prefix)
    return Leaf(Operation.NOT_NULL, term)


def starts_with(term: Term, prefix: str, *, negated: bool) -> Predicate:
    """``[NOT] starts_with(term, prefix)``; every text starts with the empty text."""
    if not prefix:
        return ALWAYS_FALSE if negated else Leaf(Operation.NOT_NULL, term)
    return Leaf(Operation.NOT_STARTS_WITH if negated else Operation.STARTS_WITH, term, prefix)


def left_of(operation: Operation, term: Term, length: int, text: str) -> Predicate:
    """The predicate of ``left(term, length) operation text``; ``length`` is at least 1.

    >>> implied("left(name, 2) = 'ab'")
    name STARTS WITH 'ab'
    >>> implied("left(name, 3) <= 'abc'")
    name < 'abc' OR name STARTS WITH 'abc'
    """
    if not text.isascii() or not text:
        # Engines differ in their definition of a character.
        if text and operation is Operation.EQ:
            return Leaf(Operation.STARTS_WITH, term, text)
        return Leaf(Operation.NOT_NULL, term)
    match operation:
        case Operation.EQ if len(text) > length:
            return ALWAYS_FALSE
        case Operation.EQ if len(text) == length:
            return Leaf(Operation.STARTS_WITH, term, text)
        case Operation.EQ:
            return Leaf(Operation.EQ, term, text)
        case Operation.NOT_EQ if len(text) == length:
            return Leaf(Operation.NOT_STARTS_WITH, term, text)
        case Operation.GT | Operation.GT_EQ:
            return Leaf(operation, term, text)
        case Operation.LT if len(text) <= length:
            return Leaf(Operation.LT, term, text)
        case Operation.LT_EQ if len(text) <= length:
            below = Leaf(Operation.LT, term, text)
            return any_of([below, Leaf(Operation.STARTS_WITH, term, text)])
        case _:
            return Leaf(Operation.NOT_NULL, term)


def _read_pattern(pattern: str, escape: str | None) -> tuple[str, str] | None:
    """The literal prefix of a LIKE pattern, and the rest from its first wildcard on.

    None if the pattern ends with the escape character.
    """
    prefix: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern):
                return None
            prefix.append(pattern[position])
        elif character in "%_":
            return "".join(prefix), pattern[position:]
        else:
            prefix.append(character)
        position += 1
    return "".join(prefix), ""
