"""Whether one predicate follows from another, as far as their shape shows it."""

from __future__ import annotations

from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Leaf,
    Or,
    Predicate,
)


class Implication:
    """Answers are kept, so that the cost is at most the product of the sizes.

    >>> from icesql.iceberg.expressions.predicate import Operation, Term
    >>> a, b, c = (Leaf(Operation.IS_NULL, Term(number, "x")) for number in (1, 2, 3))
    >>> Implication().holds(a & b, b | c), Implication().holds(a | b, a)
    (True, False)
    """

    def __init__(self) -> None:
        # The predicates are kept so that no other gets their id.
        self._known: dict[tuple[int, int], tuple[bool, Predicate, Predicate]] = {}

    def holds(self, known: Predicate, wanted: Predicate) -> bool:
        """Whether ``wanted`` is true wherever ``known`` is; False also where that is not seen."""
        key = id(known), id(wanted)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._holds(known, wanted), known, wanted)
        return found[0]

    def _holds(self, known: Predicate, wanted: Predicate) -> bool:
        if wanted is ALWAYS_TRUE or known is ALWAYS_FALSE:
            return True
        if isinstance(known, Leaf) and isinstance(wanted, Leaf):
            return _asked(known) == _asked(wanted)
        if isinstance(wanted, And):
            return self.holds(known, wanted.left) and self.holds(known, wanted.right)
        if isinstance(known, Or):
            return self.holds(known.left, wanted) and self.holds(known.right, wanted)
        # An Or on the right follows from one of its sides, or from one side of an And on the left.
        if isinstance(wanted, Or) and (
            self.holds(known, wanted.left) or self.holds(known, wanted.right)
        ):
            return True
        if isinstance(known, And):
            return self.holds(known.left, wanted) or self.holds(known.right, wanted)
        return False


def _asked(leaf: Leaf) -> tuple[object, ...]:
    """A leaf without the name that its column had."""
    return leaf.operation, leaf.term.field_id, leaf.term.transform, leaf.literal
