"""Recognize aggregates by their exact signature, to answer them from metadata or from some rows.

sqlglot has one class for ``max(x)`` and ``max(x, n)``, and wraps the argument for other parts of a
call (DISTINCT, ORDER BY, HAVING MAX). The class alone does not determine the meaning of
a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

# The arguments that a call may have. ``big_int`` is set by the parser, not an argument.
_SIGNATURES: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Avg: frozenset({"this"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Max: frozenset({"this"}),
    exp.Min: frozenset({"this"}),
    exp.Sum: frozenset({"this"}),
}
# Nodes around an argument that change which rows count, or how often.
_AROUND: Final = (exp.Distinct, exp.Order, exp.HavingMax, exp.Limit, exp.IgnoreNulls)


def is_plain_call(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether ``node`` calls one of ``kinds`` with one argument and nothing else.

    Also for ``count(*)`` and ``count()``. FILTER and OVER are nodes around the call; callers check
    for them.
    """
    kind = type(node)
    if kind not in kinds or isinstance(node.args.get("this"), _AROUND):
        return False
    return all(name in _SIGNATURES[kind] or not value for name, value in node.args.items())
