"""Aggregates by their exact signature: the calls that metadata or some of the rows may answer.

sqlglot has one class for ``max(x)`` and ``max(x, n)``, and puts what else a call says (DISTINCT,
ORDER BY, HAVING MAX) around its argument. Whoever answers a call by its class alone answers
another question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

# The parts of its tree that a call may have. ``big_int`` is the parser's mark, no argument.
_SIGNATURES: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Avg: frozenset({"this"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Max: frozenset({"this"}),
    exp.Min: frozenset({"this"}),
    exp.Sum: frozenset({"this"}),
}
# What stands around an argument and says which rows count, or how often.
_AROUND: Final = (exp.Distinct, exp.Order, exp.HavingMax, exp.Limit, exp.IgnoreNulls)


def is_plain_call(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether ``node`` calls one of ``kinds`` with one argument and nothing else.

    Also ``count(*)`` and ``count()``. A FILTER or OVER is a node around the call, for whoever asks.
    """
    kind = type(node)
    if kind not in kinds or isinstance(node.args.get("this"), _AROUND):
        return False
    return all(name in _SIGNATURES[kind] or not value for name, value in node.args.items())
