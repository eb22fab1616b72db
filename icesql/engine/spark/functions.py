"""Functions in Spark's spelling, where sqlglot's own translation would change a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from icesql.engine.spark.kinds import (
    kind,
    kind_of_type,
    literal_integer,
    literal_text,
    refuse,
    spelled,
)
from icesql.engine.spark.times import TIME_REWRITES, epoch, part_of


def rewrite_function(node: exp.Expr) -> exp.Expr:
    """The node, or what stands for it in Spark. Raises UnsupportedSqlError."""
    rewrite = _REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node)
    match node:
        case exp.TimeToUnix():
            return epoch(node)
        case exp.Anonymous():
            return _anonymous(node)
        case _:
            return node


# ------------------------------------------------------------------ text


def _regexp_replace(node: exp.RegexpReplace) -> exp.Expr:
    replacement = literal_text(node.args.get("replacement"))
    flags = literal_text(node.args.get("modifiers")) or ""
    if replacement is None or set(flags) - {"g"}:
        raise refuse("regexp_replace() with options or a computed replacement")
    # \1 is $1 in Java, where $ has to be escaped.
    java = replacement.replace("$", "\\$")
    for digit in "0123456789":
        java = java.replace(f"\\{digit}", f"${digit}")
    new = exp.Literal.string(java)
    if "g" in flags or not node.args.get("single_replace", True):
        return spelled("REGEXP_REPLACE({0}, {1}, {2})", node.this, node.expression, new, like=node)
    return spelled(
        "(CASE WHEN REGEXP_INSTR({0}, {1}) = 0 THEN {0} ELSE CONCAT("
        "SUBSTR({0}, 1, REGEXP_INSTR({0}, {1}) - 1),"
        " REGEXP_REPLACE(REGEXP_EXTRACT({0}, {1}, 0), {1}, {2}),"
        " SUBSTR({0}, REGEXP_INSTR({0}, {1}) + LENGTH(REGEXP_EXTRACT({0}, {1}, 0)))) END)",
        node.this,
        node.expression,
        new,
        like=node,
    )


def _regexp_extract(node: exp.RegexpExtract) -> exp.Expr:
    group = node.args.get("group")
    number = 0 if group is None else literal_integer(group)
    if number is None or node.args.get("parameters") or node.args.get("occurrence"):
        raise refuse("regexp_extract() with options or group names")
    return spelled(f"REGEXP_EXTRACT({{0}}, {{1}}, {number})", node.this, node.expression, like=node)


def _regexp_like(node: exp.RegexpLike) -> exp.Expr:
    if node.args.get("flag"):
        raise refuse("regexp_matches() with options")
    return node


def _substring(node: exp.Substring) -> exp.Expr:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        return node
    if length is None:
        return spelled("SUBSTRING({0}, {1})", node.this, start, like=node)
    # Position 0 lies before the text and takes one of the length.
    return spelled(
        "SUBSTRING({0}, {1}, IF({1} = 0, {2} - 1, {2}))", node.this, start, length, like=node
    )


def _left(node: exp.Left) -> exp.Expr:
    return spelled(
        "(CASE WHEN {1} >= 0 THEN LEFT({0}, {1})"
        " ELSE SUBSTR({0}, 1, GREATEST(LENGTH({0}) + {1}, 0)) END)",
        node.this,
        node.expression,
        like=node,
    )


def _right(node: exp.Right) -> exp.Expr:
    return spelled(
        "(CASE WHEN {1} >= 0 THEN RIGHT({0}, {1}) ELSE SUBSTR({0}, CAST(1 - {1} AS INT)) END)",
        node.this,
        node.expression,
        like=node,
    )


def _length(node: exp.Length) -> exp.Expr:
    match kind(node.this):
        case "text":
            return spelled("CAST(LENGTH({0}) AS BIGINT)", node.this, like="BIGINT")
        case "list" | "map":
            return spelled("CAST(SIZE({0}) AS BIGINT)", node.this, like="BIGINT")
        case _:
            raise refuse("length() of something that is no text, list or map")


# ------------------------------------------------------------------ aggregates


def _avg(node: exp.Avg) -> exp.Expr:
    if isinstance(node.this, exp.Distinct):
        if kind(node.this.expressions[0]) in ("float", "double"):
            return node
        raise refuse("avg(DISTINCT) of exact numbers")
    if kind(node.this) in ("decimal", "integer") and _is_bare(node):
        # Exactly summed, then one division: DuckDB's average is a double of that.
        exact = "{0}" if kind(node.this) == "decimal" else "CAST({0} AS DECIMAL(20,0))"
        return spelled(f"(CAST(SUM({exact}) AS DOUBLE) / COUNT({{0}}))", node.this, like="DOUBLE")
    return spelled("AVG(CAST({0} AS DOUBLE))", node.this, like="DOUBLE")


def _is_bare(node: exp.Expr) -> bool:
    """Whether the aggregate carries no FILTER and no OVER, which belong to one function."""
    return not isinstance(node.parent, exp.Filter | exp.Window | exp.IgnoreNulls | exp.RespectNulls)


def _sum(node: exp.Sum) -> exp.Expr:
    if kind(node.this) == "boolean":
        return spelled("SUM(CAST({0} AS INT))", node.this, like="BIGINT")
    return node


def _array_agg(node: exp.ArrayAgg) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        raise refuse("list(DISTINCT …)")
    if not _is_bare(node):
        raise refuse("list() with FILTER or OVER")
    orders = inner.expressions if isinstance(inner, exp.Order) else []
    value = inner.this if isinstance(inner, exp.Order) else inner
    if not orders:
        # collect_list drops NULLs and gives [] for no rows; list() keeps them and gives NULL.
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


def _arg_extreme(name: str) -> Callable[[Any], exp.Expr]:
    def rewrite(node: exp.ArgMax | exp.ArgMin) -> exp.Expr:
        if node.args.get("count") is not None or not _is_bare(node):
            raise refuse(f"{node.sql_name().lower()} with a count, FILTER or OVER")
        # Rows whose value is NULL do not count.
        return spelled(
            f"{name}({{0}}, {{1}}) FILTER (WHERE ({{0}}) IS NOT NULL)",
            node.this,
            node.expression,
            like=node,
        )

    return rewrite


def _percentile(name: str) -> Callable[[Any], exp.Expr]:
    def rewrite(node: exp.PercentileCont | exp.PercentileDisc) -> exp.Expr:
        if isinstance(node.parent, exp.WithinGroup):
            return node
        return spelled(
            f"{name}({{1}}) WITHIN GROUP (ORDER BY {{0}})", node.this, node.expression, like=node
        )

    return rewrite


# ------------------------------------------------------------------ numbers and lists


def _is_nan(node: exp.IsNan) -> exp.Expr:
    return spelled("IF({0} IS NULL, CAST(NULL AS BOOLEAN), ISNAN({0}))", node.this, like="BOOLEAN")


def _round(node: exp.Round) -> exp.Expr:
    digits = literal_integer(node.args.get("decimals")) if node.args.get("decimals") else 0
    if kind(node.this) not in ("float", "double"):
        return node
    if digits is None:
        raise refuse("round() to a computed number of digits")
    if digits <= 0:
        return spelled(f"ROUND({{0}}, {digits})", node.this, like=node)
    scale = f"1E{digits}D"
    return spelled(f"(ROUND(({{0}}) * {scale}) / {scale})", node.this, like=node)


def _contains(node: exp.ArrayContains) -> exp.Expr:
    return spelled(
        "IF({0} IS NULL OR {1} IS NULL, CAST(NULL AS BOOLEAN),"
        " COALESCE(ARRAY_CONTAINS({0}, {1}), FALSE))",
        node.this,
        node.expression,
        like="BOOLEAN",
    )


def _log(node: exp.Log) -> exp.Expr:
    base = node.this if node.expression is not None else None
    if base is None:
        return spelled("LOG10({0})", node.this, like="DOUBLE")
    return spelled("LOG({0}, {1})", base, node.expression, like="DOUBLE")


def _trunc_number(node: exp.Trunc) -> exp.Expr:
    if kind(node.this) in ("float", "double") and not node.args.get("decimals"):
        return _whole("IF({0} < 0, CEIL({0}), FLOOR({0}))", node)
    raise refuse("trunc() of an exact number")


def _whole(template: str, node: exp.Expr) -> exp.Expr:
    """Rounded to a whole double; Spark gives a BIGINT, which infinities and NaN do not fit."""
    if kind(node.this) not in ("float", "double"):
        return node
    return spelled(
        f"IF(ABS({{0}}) >= 9.0E15D, CAST({{0}} AS DOUBLE), CAST({template} AS DOUBLE))",
        node.this,
        like="DOUBLE",
    )


def _list_sum(node: exp.Anonymous) -> exp.Expr:
    (values,) = node.expressions
    if values.type is None or not values.type.expressions:
        raise refuse("list_sum() of a list whose type is not known")
    element = _element_kind(values)
    start = {"integer": "0L", "float": "0D", "double": "0D"}.get(element)
    if start is None:
        raise refuse(f"list_sum() of {element}")
    return spelled(
        "IF(SIZE(FILTER({0}, x -> x IS NOT NULL)) > 0,"
        f" AGGREGATE(FILTER({{0}}, x -> x IS NOT NULL), {start}, (a, x) -> a + x), NULL)",
        values,
        like="BIGINT" if element == "integer" else "DOUBLE",
    )


def _element_kind(values: exp.Expr) -> str:
    assert values.type is not None
    return kind_of_type(values.type.expressions[0])


def _anonymous(node: exp.Anonymous) -> exp.Expr:
    match str(node.this).lower(), node.expressions:
        case (("list_sum" | "array_sum"), [_]):
            return _list_sum(node)
        case (("date_part" | "datepart"), [exp.Literal() as part, value]):
            return part_of(part.name, value, node)
        case "isfinite", [value]:
            return spelled(
                "(NOT ISNAN({0}) AND ABS({0}) <> DOUBLE('Infinity'))", value, like="BOOLEAN"
            )
        case "isoyear", [value]:
            return part_of("ISOYEAR", value, node)
        case "bit_count", [value]:
            return spelled("BIT_COUNT({0})", value, like=node)
        case _:
            return node


_REWRITES: Final[dict[type[exp.Expr], Callable[[Any], exp.Expr]]] = {
    **TIME_REWRITES,
    exp.Dayname: lambda node: spelled("DATE_FORMAT({0}, 'EEEE')", node.this, like="VARCHAR"),
    exp.Monthname: lambda node: spelled("DATE_FORMAT({0}, 'MMMM')", node.this, like="VARCHAR"),
    exp.RegexpReplace: _regexp_replace,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpLike: _regexp_like,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Right: _right,
    exp.Length: _length,
    exp.ArraySize: _length,
    exp.Avg: _avg,
    exp.Sum: _sum,
    exp.ArrayAgg: _array_agg,
    exp.ArgMax: _arg_extreme("MAX_BY"),
    exp.ArgMin: _arg_extreme("MIN_BY"),
    exp.PercentileCont: _percentile("PERCENTILE_CONT"),
    exp.PercentileDisc: _percentile("PERCENTILE_DISC"),
    exp.IsNan: _is_nan,
    exp.IsInf: lambda node: spelled("(ABS({0}) = DOUBLE('Infinity'))", node.this, like="BOOLEAN"),
    exp.RegexpFullMatch: lambda node: spelled(
        "({0} RLIKE CONCAT('^(?:', {1}, ')$'))", node.this, node.expression, like="BOOLEAN"
    ),
    exp.Floor: lambda node: _whole("FLOOR({0})", node),
    exp.Ceil: lambda node: _whole("CEIL({0})", node),
    exp.Round: _round,
    exp.ArrayContains: _contains,
    exp.Log: _log,
    exp.Trunc: _trunc_number,
}
