"""Small questions about a tree: plain aggregates, volatile functions, short text for people."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.sql.engine_functions import classes
from icesql.sql.spark_text.functions import classes as spark_classes

if TYPE_CHECKING:
    from collections.abc import Iterator


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


# Volatile functions: a statement with one must not be evaluated twice.


def volatile_parts(tree: exp.Expr) -> Iterator[str]:
    """The names of calls such as ``random()``, and samples, in a tree whose clock is stopped."""
    from sqlglot import exp

    node: Any
    for node in tree.find_all(exp.Func, exp.TableSample):
        if isinstance(node, exp.TableSample):
            yield "TABLESAMPLE"
            continue
        names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
        yield from (f"{each.lower()}()" for each in names if each.lower() in _names())


@functools.cache
def _names() -> frozenset[str]:
    own = {name for (_, name), kind in classes().items() if kind == "volatile"}
    return frozenset(own | {name for name, kind in spark_classes().items() if kind == "volatile"})


# The text of a condition as EXPLAIN and messages show it: long ones by their first parts.

_MOST_NODES: Final = 1_000
_MOST_PARTS: Final = 5


def short_sql(node: exp.Expr) -> str:
    """The SQL of ``node`` in DuckDB's spelling; never longer than a person reads."""
    try:
        if _is_small(node):
            return node.sql(dialect="duckdb")
        if isinstance(node, exp.And | exp.Or):
            parts = list(node.flatten(unnest=False))
            word = " AND " if isinstance(node, exp.And) else " OR "
            first = word.join(_part(each) for each in parts[:_MOST_PARTS])
            return f"{first}{word}… and {len(parts) - _MOST_PARTS:,} more"
    except RecursionError:
        pass
    return _part(node)


def _part(node: exp.Expr) -> str:
    kind = type(node).__name__.upper()
    return node.sql(dialect="duckdb") if _is_small(node) else f"a long {kind}"


def _is_small(node: exp.Expr) -> bool:
    return next(islice(node.walk(), _MOST_NODES, None), None) is None
