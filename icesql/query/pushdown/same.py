"""Which nodes of a tree stand for what the engine's own parser reads at that place.

sqlglot's tree is another reading of the user's text than the engine's: where a word is lost on the
way, a predicate of the tree would leave out rows that the engine's condition keeps. So where the
text itself runs, whoever has the engine's tree marks what both say alike, and the rest of the tree
prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlglot import exp

# Given a tree, the text that the engine reads, and the offset at which the places of the tree find
# it. A copy of a node keeps its mark.
MarkSame = Callable[["exp.Expr", str, int], None]

NOT_SAME: Final = "the engine's parser does not read the same condition here"
OTHER_SELECT: Final = "the engine's parser does not read the same FROM or the same clauses here"

_MARK: Final = "same"


def mark_same(node: exp.Expr) -> None:
    """Say of a query, a condition or a column that both parsers read the same."""
    node.meta[_MARK] = True


def is_same(node: exp.Expr) -> bool:
    """Whether ``mark_same`` was said of a node or of what it was copied from."""
    return bool(node.meta.get(_MARK))
