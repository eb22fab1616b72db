"""``a = b IS NULL``: what IS belongs to without parentheses, which releases of sqlglot disagree on.

Newer ones follow each dialect. Older ones read ``a = (b IS NULL)``, and write words that DuckDB
reads as ``(a = b) IS NULL``. There it is refused.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from icesql.sql.positions import unsupported

_IS: Final = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike,
    exp.In, exp.Between, exp.Escape, *_IS,
)  # fmt: skip


@functools.cache
def ranks_is() -> bool:
    """Whether this release says in its trees what IS belongs to."""
    (tree,) = Dialect().parse("SELECT a = b IS NULL")
    found = tree.find(exp.Is) if tree is not None else None
    return found is not None and not isinstance(found.parent, exp.EQ)


def check_is(tree: Any) -> Any:
    """The tree. Raises UnsupportedSqlError for an IS beside another comparison."""
    for node in tree.find_all(*_IS) if tree is not None else ():
        around = node.parent
        while isinstance(around, exp.Not):
            around = around.parent
        beside = node.this
        while isinstance(beside, exp.Not):
            beside = beside.this
        if isinstance(around, _COMPARISONS) or isinstance(beside, _COMPARISONS):
            hint = "put one of them in parentheses, or install a newer sqlglot"
            raise unsupported("IS beside another comparison", node, hint)
    return tree
