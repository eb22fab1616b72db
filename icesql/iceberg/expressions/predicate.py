"""The Iceberg expression tree: immutable predicates over columns by field id, evaluated on a row.

Trees are made by ``query/predicate.py`` from SQL, negation free from the start (SQL's NOT is
pushed to the leaves under three-valued logic before a tree is made), so every evaluator can
rely on And, Or and leaves alone. A leaf is false for NULL except IS_NULL; NOT_EQ, NOT_IN and
NOT_STARTS_WITH are false for NULL too, as in SQL's WHERE.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

from icesql.frozen import Frozen
from icesql.iceberg.manifest.partition_values import UNSTORED


class Operation(Enum):
    """The test that a leaf makes of its term; the value is the spelling in EXPLAIN."""

    IS_NULL = "IS NULL"
    NOT_NULL = "IS NOT NULL"
    IS_NAN = "IS NAN"
    NOT_NAN = "IS NOT NAN"
    LT = "<"
    LT_EQ = "<="
    GT = ">"
    GT_EQ = ">="
    EQ = "="
    NOT_EQ = "<>"
    IN = "IN"
    NOT_IN = "NOT IN"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"


UNARY: Final = (Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN)
SETS: Final = (Operation.IN, Operation.NOT_IN)
# Of a value and a literal. Python's are IEEE's: false for NaN except !=, and -0.0 == 0.0.
COMPARISONS: Final[dict[Operation, Callable[[Any, Any], Any]]] = {
    Operation.LT: operator.lt,
    Operation.LT_EQ: operator.le,
    Operation.GT: operator.gt,
    Operation.GT_EQ: operator.ge,
    Operation.EQ: operator.eq,
    Operation.NOT_EQ: operator.ne,
}


class Predicate(Frozen):
    """Base of all nodes; ``&`` and ``|`` simplify as they combine."""

    def __and__(self, other: Predicate) -> Predicate:
        if self is ALWAYS_FALSE or other is ALWAYS_FALSE:
            return ALWAYS_FALSE
        if self is ALWAYS_TRUE or self == other:
            return other
        if other is ALWAYS_TRUE:
            return self
        return And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        if self is ALWAYS_TRUE or other is ALWAYS_TRUE:
            return ALWAYS_TRUE
        if self is ALWAYS_FALSE or self == other:
            return other
        if other is ALWAYS_FALSE:
            return self
        return Or(self, other)


class _AlwaysTrue(Predicate):
    def __str__(self) -> str:
        return "true"

    def __reduce__(self) -> str:
        return "ALWAYS_TRUE"


class _AlwaysFalse(Predicate):
    def __str__(self) -> str:
        return "false"

    def __reduce__(self) -> str:
        return "ALWAYS_FALSE"


ALWAYS_TRUE: Final[Predicate] = _AlwaysTrue()
ALWAYS_FALSE: Final[Predicate] = _AlwaysFalse()


class And(Predicate):
    left: Predicate
    right: Predicate

    def __str__(self) -> str:
        return f"({self.left} AND {self.right})"


class Or(Predicate):
    left: Predicate
    right: Predicate

    def __str__(self) -> str:
        return f"({self.left} OR {self.right})"


class Term(Frozen):
    """A column, or a transform of it when ``transform`` is not "identity".

    ``name`` is the full dotted name at the time of binding, for people; ``field_id`` decides.
    """

    field_id: int
    name: str
    transform: str = "identity"

    def __str__(self) -> str:
        return self.name if self.transform == "identity" else f"{self.transform}({self.name})"


class Leaf(Predicate):
    """One comparison. ``literal`` is in the internal form of the term's type (``iceberg.types``).

    It is None for the four unary operations, a frozenset for IN and NOT_IN, else one value that is
    neither NULL nor NaN.
    """

    operation: Operation
    term: Term
    literal: Any = None

    def __str__(self) -> str:
        text = f"{self.term} {self.operation.value}"
        if self.operation in UNARY:
            return text
        if self.operation in SETS:
            return f"{text} ({', '.join(sorted(map(repr, self.literal)))})"
        return f"{text} {self.literal!r}"


_OPPOSITES: Final = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.GT, Operation.LT_EQ),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.IN, Operation.NOT_IN),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
)
# The complement of each operation, for values that are neither NULL nor NaN.
NEGATED: Final = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}


def negated(predicate: Predicate) -> Predicate:
    """SQL's NOT of ``predicate``, for values that are neither NULL nor NaN.

    NULL and NaN satisfy neither a comparison nor its negation.

    >>> str(negated(Leaf(Operation.LT, Term(1, "x"), 5) & Leaf(Operation.NOT_NULL, Term(2, "y"))))
    '(x >= 5 OR y IS NULL)'
    """
    match predicate:
        case And(left, right):
            return negated(left) | negated(right)
        case Or(left, right):
            return negated(left) & negated(right)
        case Leaf(operation, term, literal):
            return Leaf(NEGATED[operation], term, literal)
        case _:
            return ALWAYS_FALSE if predicate is ALWAYS_TRUE else ALWAYS_TRUE


def replace_leaves(predicate: Predicate, made: Callable[[Leaf], Predicate]) -> Predicate:
    """The predicate with what ``made`` returns in the place of each leaf, simplified."""
    match predicate:
        case Leaf():
            return made(predicate)
        case And(left, right):
            return replace_leaves(left, made) & replace_leaves(right, made)
        case Or(left, right):
            return replace_leaves(left, made) | replace_leaves(right, made)
        case _:
            return predicate


def keep_columns(predicate: Predicate, field_ids: frozenset[int]) -> Predicate:
    """A predicate implied by ``predicate`` that refers to these columns only."""
    return replace_leaves(
        predicate, lambda leaf: leaf if leaf.term.field_id in field_ids else ALWAYS_TRUE
    )


def holds(predicate: Predicate, test: Callable[[Leaf], bool]) -> bool:
    """Whether a predicate is true where its leaves are what ``test`` says. Raises TypeError."""
    match predicate:
        case Leaf():
            return test(predicate)
        case And(left, right):
            return holds(left, test) and holds(right, test)
        case Or(left, right):
            return holds(left, test) or holds(right, test)
        case _ if predicate in (ALWAYS_TRUE, ALWAYS_FALSE):
            return predicate is ALWAYS_TRUE
        case _:
            raise TypeError(f"not a predicate: {predicate!r}")


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Every leaf of a predicate."""
    match predicate:
        case And(left, right) | Or(left, right):
            yield from leaves(left)
            yield from leaves(right)
        case Leaf():
            yield predicate
        case _:
            pass


# ------------------------------------------------------------------ evaluation


def evaluate(predicate: Predicate, value_of: Callable[[int], Any]) -> bool:
    """Whether a row satisfies ``predicate``; ``value_of`` returns its values by field id.

    NULL and NaN behave as in the predicate module. Of a term that transforms its column it returns
    the transformed value.
    """
    return holds(
        predicate, lambda leaf: matches(leaf.operation, leaf.literal, value_of(leaf.term.field_id))
    )


def matches(operation: Operation, literal: Any, value: Any) -> bool:
    """Whether one value satisfies one comparison; both in the internal form.

    UNSTORED, an unknown partition value, may satisfy any.
    """
    if value is None:
        return operation is Operation.IS_NULL
    if value is UNSTORED:
        return True
    match operation:
        case Operation.IS_NULL:
            return False
        case Operation.NOT_NULL:
            return True
        case Operation.IS_NAN:
            return bool(value != value)
        case Operation.NOT_NAN:
            return bool(value == value)
        case Operation.IN:
            return value in literal
        case Operation.NOT_IN:
            return value not in literal
        case Operation.STARTS_WITH:
            return bool(value.startswith(literal))
        case Operation.NOT_STARTS_WITH:
            return not value.startswith(literal)
        case _:
            return bool(COMPARISONS[operation](value, literal))
