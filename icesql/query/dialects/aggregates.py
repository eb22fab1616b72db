"""Aggregates and window functions with their clauses: DISTINCT, FILTER, OVER …"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from sqlglot import exp

AGGREGATES: Final = frozenset(
    re.findall(
        r"\w+",
        """
        any_value approx_count_distinct arg_max arg_max_null arg_min arg_min_null avg
        bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp
        cume_dist dense_rank first first_value grouping grouping_id histogram kurtosis
        kurtosis_pop lag last last_value lead list listagg max median min mode nth_value
        ntile percent_rank quantile_cont quantile_disc rank regr_avgx regr_avgy regr_count
        regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number skewness
        stddev_pop stddev_samp string_agg sum var_pop var_samp
        """,
    )
)


class Around(Struct):
    """The clauses around a call in the user's text, already translated to DuckDB."""

    distinct: bool = False
    filter: exp.Expr | None = None
    window: exp.Window | None = None
    order: exp.Order | None = None
    ignore_nulls: bool = False


def name_of(node: exp.Expr) -> str:
    """The name of a call in a template, in lower case; "" for other nodes."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def wrapped(tree: exp.Expr, around: Around) -> exp.Expr:
    """``tree`` with the clauses of the user's call put around each aggregate of the template."""
    return with_aggregates(tree, lambda call: _wrapped(call, around))


def with_aggregates(tree: exp.Expr, around: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Replace each aggregate of ``tree``, or ``tree`` if it has none, by ``around`` of it."""
    calls: list[exp.Expr] = []
    _collect(tree, calls)
    root = exp.Paren(this=tree)
    for call in calls or [tree]:
        place = exp.Placeholder()
        call.replace(place)
        place.replace(around(call))
    made: exp.Expr = root.this.pop()
    return made


def _collect(node: exp.Expr, found: list[exp.Expr]) -> None:
    """The outermost aggregates below ``node``, with FILTER and IGNORE NULLS of the template."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls) or name_of(node) in AGGREGATES:
        found.append(node)
        return
    if isinstance(node, exp.Query):
        return
    for child in list(node.iter_expressions()):
        _collect(child, found)


def _wrapped(call: exp.Expr, around: Around) -> exp.Expr:
    own = call.this if isinstance(call, exp.Filter) else call
    if around.distinct:
        _make_distinct(own)
    condition = call.expression.this if isinstance(call, exp.Filter) else None
    given = around.filter
    if given is not None:
        given = given.copy()
        condition = given if condition is None else exp.and_(condition, given, copy=False)
    made = own.pop() if isinstance(call, exp.Filter) else call
    if condition is not None:
        made = exp.Filter(this=made, expression=exp.Where(this=condition))
    if around.window is not None:
        window = around.window.copy()
        window.set("this", made)
        return window
    return made


def _make_distinct(call: exp.Expr) -> None:
    if isinstance(call, exp.Anonymous):
        first, *rest = call.expressions
        order = first if isinstance(first, exp.Order) else None
        value = order.this if order is not None else first
        made: exp.Expr = exp.Distinct(expressions=[value])
        if order is not None:
            order.set("this", made)
            made = order
        call.set("expressions", [made, *rest])
    else:
        call.set("this", exp.Distinct(expressions=[call.this]))
