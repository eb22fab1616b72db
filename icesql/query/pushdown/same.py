"""Which nodes of a tree stand for what the engine's own parser reads at that place.

sqlglot's tree is another reading of the user's text than the engine's: where a word is lost on the
way, a predicate of the tree would leave out rows that the engine's condition keeps. So where the
text itself runs, whoever has the engine's tree marks what both say alike, and the rest of the tree
prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.context import QueryContext
    from icesql.query.pushdown.computed.expression import Expression

# Given a tree, the text that the engine reads, and the offset at which the places of the tree find
# it. A copy of a node keeps its mark.
MarkSame = Callable[["exp.Expr", str, int], None]
# Runs SQL without tables on the engine, with parameters; None where it raises.
Ask = Callable[[str, Sequence[Any], "QueryContext"], "list[tuple[Any, ...]] | None"]

NOT_SAME: Final = "the engine's parser does not read the same condition here"
OTHER_SELECT: Final = "the engine's parser does not read the same FROM or the same clauses here"

_MARK: Final = "same"
_READING: Final = "reading"


def _nothing() -> None:
    return None


class Reading:
    """What the engine reads in the place of a condition or column of the tree; made when asked.

    A copy of a node keeps its reading, whose inputs are the columns of the original tree.
    """

    def __init__(self, make: Callable[[], Expression | None]) -> None:
        self._make: Callable[[], Expression | None] | None = make
        self._made: Expression | None = None

    def __deepcopy__(self, memo: Any) -> Reading:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # It is asked while a query is bound, and one that travels has been.
        return Reading, (_nothing,)

    def expression(self) -> Expression | None:
        """The expression, None where it holds what nobody here knows."""
        if self._make is not None:
            try:
                self._made = self._make()
            except RecursionError:
                self._made = None
            self._make = None
        return self._made


def mark_same(node: exp.Expr) -> None:
    """Say of a query, a condition or a column that both parsers read the same."""
    node.meta[_MARK] = True


def is_same(node: exp.Expr) -> bool:
    """Whether ``mark_same`` was said of a node or of what it was copied from."""
    return bool(node.meta.get(_MARK))


def set_reading(node: exp.Expr, reading: Reading) -> None:
    """Say what the engine's own parser reads in the place of a condition or of a column."""
    node.meta[_READING] = reading


def reading_of(node: exp.Expr) -> Reading | None:
    """What ``set_reading`` said of a node, or of what it was copied from."""
    found: Reading | None = node.meta.get(_READING)
    return found
