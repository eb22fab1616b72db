"""Recognize aggregates by their exact signature, to answer them from metadata or from some rows.

sqlglot has one class for ``max(x)`` and ``max(x, n)``, and wraps the argument for other parts of a
call (DISTINCT, ORDER BY, HAVING MAX). The class alone does not determine the meaning of
a call.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# Nodes around an argument that change which rows count, or how often.
_AROUND: Final = (exp.Distinct, exp.Order, exp.HavingMax, exp.Limit, exp.IgnoreNulls)


def is_plain_call(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether ``node`` calls one of ``kinds`` with one argument and nothing else.

    Also for ``count(*)`` and ``count()``. FILTER and OVER are nodes around the call; callers check
    for them.
    """
    if type(node) not in kinds or isinstance(node.args.get("this"), _AROUND):
        return False
    # ``big_int`` is set by the parser, not an argument.
    return all(name in ("this", "big_int") or not value for name, value in node.args.items())
