"""Functions in Spark's spelling, where sqlglot's own translation would change a value."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.engine.spark.releases import WITH_FILTERED_WINDOWS, WITH_LISTAGG, check_sql, has_listagg
from icesql.engine.spark.sql.kinds import (
    NUMBERS,
    Rewrite,
    Rewrites,
    kind,
    kind_of_type,
    refuse,
    row_of,
    rows,
    spelled,
    string,
)
from icesql.engine.spark.sql.numbers import NUMBER_REWRITES
from icesql.engine.spark.sql.texts import TEXT_REWRITES
from icesql.engine.spark.sql.times import TIME_REWRITES, part_of


def rewrite_function(node: exp.Expr) -> exp.Expr:
    """The node, or its replacement in Spark. Raises UnsupportedSqlError."""
    ordered = isinstance(node, exp.AggFunc) and isinstance(node.this, exp.Order)
    if ordered and not isinstance(node, exp.ArrayAgg | exp.GroupConcat):
        assert isinstance(node, exp.Func)
        raise refuse(f"{node.sql_name().lower()}() with ORDER BY", "use arg_min() or arg_max()")
    if isinstance(node, exp.Window) and isinstance(node.this, exp.Filter):
        check_sql("FILTER of a window function", WITH_FILTERED_WINDOWS)
    rewrite = _REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node)
    match node:
        case exp.Filter() | exp.Window() if not isinstance(node.parent, exp.Filter | exp.Window):
            return _exact_average(node)
        case exp.Anonymous():
            return _called(node, node.name.lower(), node.expressions)
        case _:
            return _called(node, node.key, list(node.iter_expressions()))


def _called(node: exp.Expr, name: str, operands: list[exp.Expr]) -> exp.Expr:
    match name, operands:
        case (("list_sum" | "array_sum"), [values]):
            return _list_sum(values)
        case (("date_part" | "datepart"), [exp.Literal() as part, value]):
            return part_of(part.name, value)
    row = row_of(name, [*map(kind, operands)]) if name in rows("functions") else None
    if row is None:
        return node
    text, like = row
    if text.startswith("@"):
        return part_of(text[1:], operands[0])
    return spelled(text, *operands, like=like or node)


# ------------------------------------------------------------------ aggregates


def _avg(node: exp.Avg) -> exp.Expr:
    if isinstance(node.this, exp.Distinct):
        if kind(node.this.expressions[0]) in ("float", "double"):
            return node
        raise refuse("avg(DISTINCT) of exact numbers")
    if kind(node.this) in ("decimal", "integer"):
        if isinstance(node.parent, exp.Filter | exp.Window):
            # FILTER and OVER have to apply to sum and count: see ``_exact_average``.
            return node
        if _is_bare(node):
            # DuckDB's average is a double: an exact sum, then a single division.
            text = f"(CAST(SUM({_exact(node.this)}) AS DOUBLE) / COUNT({{0}}))"
            return spelled(text, node.this, like="DOUBLE")
    return spelled("AVG(CAST({0} AS DOUBLE))", node.this, like="DOUBLE")


def _exact(value: exp.Expr) -> str:
    return "{0}" if kind(value) == "decimal" else "CAST({0} AS DECIMAL(20,0))"


def _exact_average(node: exp.Filter | exp.Window) -> exp.Expr:
    """``avg(x) FILTER (…) OVER (…)`` of exact numbers, as a sum divided by a count."""
    core = _core(node)
    if not isinstance(core, exp.Avg):
        return node
    parts = []
    for text in (f"SUM({_exact(core.this)})", "COUNT({0})"):
        made = node.copy()
        _core(made).replace(spelled(text, core.this, like="DOUBLE"))
        parts.append(made)
    return spelled("(CAST({0} AS DOUBLE) / {1})", *parts, like="DOUBLE")


def _core(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Filter | exp.Window):
        node = node.this
    return node


def _is_bare(node: exp.Expr) -> bool:
    """True if the aggregate has no FILTER and no OVER, which apply to a single function."""
    return not isinstance(node.parent, exp.Filter | exp.Window | exp.IgnoreNulls | exp.RespectNulls)


def _array_agg(node: exp.ArrayAgg) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        raise refuse("list(DISTINCT …)")
    if not _is_bare(node):
        raise refuse("list() with FILTER or OVER")
    orders = inner.expressions if isinstance(inner, exp.Order) else []
    value = inner.this if isinstance(inner, exp.Order) else inner
    if not orders:
        # collect_list drops NULLs and returns [] for no rows; list() keeps them and returns NULL.
        return spelled(
            "TRANSFORM(NULLIF(COLLECT_LIST(NAMED_STRUCT('v', {0})), ARRAY()), x -> x.v)",
            value,
            like=node,
        )
    keys = ", ".join(f"'k{at}', {{{at + 1}}}" for at in range(len(orders)))
    comparisons = []
    for at, each in enumerate(orders):
        down = bool(each.args.get("desc"))
        nulls_first = bool(each.args.get("nulls_first"))
        low, high = ("1", "-1") if down else ("-1", "1")
        null = ("-1", "1") if nulls_first else ("1", "-1")
        comparisons.append(
            f"WHEN a.k{at} IS NULL AND b.k{at} IS NOT NULL THEN {null[0]} "
            f"WHEN a.k{at} IS NOT NULL AND b.k{at} IS NULL THEN {null[1]} "
            f"WHEN a.k{at} < b.k{at} THEN {low} WHEN a.k{at} > b.k{at} THEN {high}"
        )
    return spelled(
        f"TRANSFORM(ARRAY_SORT(NULLIF(COLLECT_LIST(NAMED_STRUCT('v', {{0}}, {keys})), ARRAY()),"
        f" (a, b) -> CASE {' '.join(comparisons)} ELSE 0 END), x -> x.v)",
        value,
        *(each.this for each in orders),
        like=node,
    )


def _group_concat(node: exp.GroupConcat) -> exp.Expr:
    """string_agg(): LISTAGG if Spark has it, else the joined texts of a sorted list."""
    if has_listagg():
        return node
    if isinstance(node.this, exp.Distinct) or not _is_bare(node):
        check_sql("string_agg() with DISTINCT, FILTER or OVER", WITH_LISTAGG)
    values = exp.ArrayAgg(this=node.this.copy())
    # NULLs are ignored; without values the result is NULL.
    return spelled(
        "ARRAY_JOIN(NULLIF(FILTER({0}, x -> x IS NOT NULL), ARRAY()), {1})",
        _array_agg(values),
        node.args.get("separator") or string(","),
        like=node,
    )


def _arg_extreme(name: str) -> Rewrite:
    def rewrite(node: exp.ArgMax | exp.ArgMin) -> exp.Expr:
        if node.args.get("count") is not None or not _is_bare(node):
            raise refuse(f"{node.sql_name().lower()} with a count, FILTER or OVER")
        # Rows whose value is NULL are ignored.
        return spelled(
            f"{name}({{0}}, {{1}}) FILTER (WHERE ({{0}}) IS NOT NULL)",
            node.this,
            node.expression,
            like=node,
        )

    return rewrite


def _percentile(name: str) -> Rewrite:
    def rewrite(node: exp.PercentileCont | exp.PercentileDisc) -> exp.Expr:
        if kind(node.this) not in NUMBERS and not isinstance(node.parent, exp.WithinGroup):
            raise refuse("a quantile of a non-numeric value")
        if isinstance(node.parent, exp.WithinGroup):
            return node
        return spelled(
            f"{name}({{1}}) WITHIN GROUP (ORDER BY {{0}})", node.this, node.expression, like=node
        )

    return rewrite


def _grouping(node: exp.Grouping) -> exp.Expr:
    """grouping(): Spark accepts it only with ROLLUP, CUBE and GROUPING SETS; else it is 0."""
    select = node.find_ancestor(exp.Select)
    group = select.args.get("group") if select is not None else None
    if group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:
        return node
    return spelled("0L", like="BIGINT")


# ------------------------------------------------------------------ lists


def _concatenated_lists(node: exp.ArrayConcat) -> exp.Expr:
    """list_concat() treats NULL as an empty list."""
    lists = (node.this, *node.expressions)
    if any(kind(each) != "list" for each in lists):
        raise refuse("list_concat() of a value that is not a list")
    inner = ", ".join(f"COALESCE({{{at}}}, ARRAY())" for at in range(len(lists)))
    return spelled(f"CONCAT({inner})", *lists, like=node)


def _list_sum(values: exp.Expr) -> exp.Expr:
    if values.type is None or not values.type.expressions:
        raise refuse("list_sum() of a list of unknown type")
    element = kind_of_type(values.type.expressions[0])
    start = {"integer": "0L", "float": "0D", "double": "0D"}.get(element)
    if start is None:
        raise refuse(f"list_sum() of {element}")
    return spelled(
        "IF(SIZE(FILTER({0}, x -> x IS NOT NULL)) > 0,"
        f" AGGREGATE(FILTER({{0}}, x -> x IS NOT NULL), {start}, (a, x) -> a + x), NULL)",
        values,
        like="BIGINT" if element == "integer" else "DOUBLE",
    )


_REWRITES: Final[Rewrites] = {
    **TIME_REWRITES,
    **NUMBER_REWRITES,
    **TEXT_REWRITES,
    exp.Avg: _avg,
    exp.ArrayAgg: _array_agg,
    exp.GroupConcat: _group_concat,
    exp.ArgMax: _arg_extreme("MAX_BY"),
    exp.ArgMin: _arg_extreme("MIN_BY"),
    exp.Grouping: _grouping,
    exp.PercentileCont: _percentile("PERCENTILE_CONT"),
    exp.PercentileDisc: _percentile("PERCENTILE_DISC"),
    exp.ArrayConcat: _concatenated_lists,
}
