"""Arithmetic and functions of numbers in Spark's spelling, exact where Spark rounds or refuses."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.engine.spark.releases import is_corr_total
from icesql.engine.spark.sql.kinds import Rewrites, kind, literal_integer, refuse, spelled

_FLOATS: Final = ("float", "double")
# A double holds this many decimal digits; engines differ in the digits after them.
_EXACT_DIGITS: Final = 15


def divide(node: exp.Div) -> exp.Expr:
    """``/``: a double, or a FLOAT for a FLOAT and an exact number; x/0 is an infinity or NaN."""
    kinds = {kind(node.this), kind(node.expression)}
    if "interval" in kinds:
        raise refuse("a division of intervals")
    result = "FLOAT" if "float" in kinds and "double" not in kinds else "DOUBLE"
    over, under = node.this, node.expression
    if result == "FLOAT":
        over, under = as_float(over), as_float(under)
    value = literal_integer(node.expression)
    if value:
        made = spelled(f"(CAST({{0}} AS DOUBLE) / {value}D)", over, like=result)
    else:
        # 1/0 is an infinity, 0/0 is NaN, and a negative zero inverts the sign.
        made = spelled(
            "(CASE WHEN CAST({1} AS DOUBLE) = 0 THEN CAST({0} AS DOUBLE) * "
            "IF(CAST(CAST({1} AS DOUBLE) AS STRING) = '-0.0', DOUBLE('-Infinity'),"
            " DOUBLE('Infinity')) "
            "ELSE CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE) END)",
            over,
            under,
            like=result,
        )
    return made if result == "DOUBLE" else spelled("CAST({0} AS FLOAT)", made, like="FLOAT")


def as_float(node: exp.Expr) -> exp.Expr:
    """A number as a FLOAT."""
    if kind(node) == "float":
        return node
    # Spark merges nested casts, which would keep digits that FLOAT lacks.
    return spelled("(CAST({0} AS FLOAT) * FLOAT(1))", node, like="FLOAT")


def single_precision(node: exp.Add | exp.Sub | exp.Mul) -> exp.Expr:
    """``+``, ``-`` and ``*`` of a FLOAT and an exact number give a FLOAT, not a double."""
    kinds = {kind(node.this), kind(node.expression)}
    if "float" in kinds and kinds & {"integer", "decimal"}:
        for name in ("this", "expression"):
            node.set(name, as_float(node.args[name]))
        node.type = exp.DataType.build("FLOAT")
    return node


def negated(node: exp.Neg) -> exp.Expr:
    """``-x``; Spark's own operator rounds decimals to 34 digits."""
    if kind(node.this) != "decimal" or isinstance(node.this, exp.Literal):
        return node
    return spelled("(0 - ({0}))", node.this, like=node)


def decimal_of_double(node: exp.Cast, word: str, precision: int, scale: int) -> exp.Expr:
    """CAST of a floating-point number to a DECIMAL, rounded as in the local engine: the product
    with the power of ten, half away from zero."""
    if precision > _EXACT_DIGITS:
        raise refuse(
            f"a CAST of a floating-point number to a DECIMAL of {precision} digits",
            f"more than {_EXACT_DIGITS} are not exact",
        )
    power, unit = f"1E{scale}D", f"CAST(1E-{scale} AS DECIMAL({scale + 1},{scale}))"
    scaled = f"CAST({{0}} AS DOUBLE) * {power}"
    return spelled(
        f"CAST({word}(ROUND({scaled}) AS DECIMAL({precision},0))"
        f" * {unit} AS DECIMAL({precision},{scale}))",
        node.this,
        like=node,
    )


# ------------------------------------------------------------------ functions


def _logarithm(name: str, node: exp.Expr) -> exp.Expr:
    """log(0) is -Infinity, log of a negative number is NaN; Spark returns NULL for both."""
    return spelled(
        f"(CASE WHEN {{0}} > 0 THEN {name}({{0}}) WHEN {{0}} = 0 THEN DOUBLE('-Infinity')"
        " WHEN {0} < 0 THEN DOUBLE('NaN') END)",
        spelled("CAST({0} AS DOUBLE)", node, like="DOUBLE"),
        like="DOUBLE",
    )


def _log(node: exp.Log) -> exp.Expr:
    if node.expression is None:
        return _logarithm("LOG10", node.this)
    base = literal_integer(node.this)
    names = {2: "LOG2", 10: "LOG10"}
    if base in names:
        return _logarithm(names[base], node.expression)
    if base is None or base < 2:
        raise refuse("log() with a base other than a literal greater than 1")
    return spelled(f"({{0}} / LN({base}D))", _logarithm("LN", node.expression), like="DOUBLE")


def _round(node: exp.Round) -> exp.Expr:
    digits = literal_integer(node.args.get("decimals")) if node.args.get("decimals") else 0
    if kind(node.this) not in _FLOATS:
        return node
    if digits is None:
        raise refuse("round() to a computed number of digits")
    if digits <= 0:
        return spelled(f"ROUND({{0}}, {digits})", node.this, like=node)
    return spelled(f"transform(array({{0}}), own_x -> {_rounded(digits)})[0]", node.this, like=node)


def _rounded(digits: int) -> str:
    """``own_x`` to ``digits`` digits, as DuckDB rounds: half away from zero, of the exact value.

    A product that ends in .5 may itself be rounded: its error, by Dekker's method, decides the
    direction. DuckDB 2.0.0 ignores the error.
    """
    import _duckdb

    scale = float(10**digits)
    product = f"(own_x * {scale!r}D)"
    plain = f"ROUND({product})"
    if str(_duckdb.__version__) != "2.0.0":
        split = 134217729.0
        high = split * scale - (split * scale - scale)
        low = scale - high
        x_high = f"({split!r}D * own_x - ({split!r}D * own_x - own_x))"
        x_low = f"(own_x - {x_high})"
        error = (
            f"((({x_high} * {high!r}D - {product}) + {x_high} * ({low!r}D) + {x_low} * {high!r}D)"
            f" + {x_low} * ({low!r}D))"
        )
        plain += (
            f" - IF(ABS({product}) % 1D = 0.5D AND {error} * SIGN({product}) < 0D,"
            f" SIGN({product}), 0D)"
        )
    return f"IF(ABS({product}) = DOUBLE('Infinity'), own_x, ({plain}) / {scale!r}D)"


_CORRELATION: Final = (
    "IF(COUNT({0}, {1}) = 0, CAST(NULL AS DOUBLE), COALESCE(CORR({0}, {1}), DOUBLE('NaN')))"
)
# Deviations of pairs without NULLs, as in CORR.
_BY_DEVIATIONS: Final = (
    "IF(COUNT({0}, {1}) = 0, CAST(NULL AS DOUBLE), COALESCE(COVAR_POP({0}, {1})"
    " / NULLIF(STDDEV_POP(IF(({1}) IS NULL, NULL, {0}))"
    " * STDDEV_POP(IF(({0}) IS NULL, NULL, {1})), 0), DOUBLE('NaN')))"
)


def _correlation(node: exp.Corr) -> exp.Expr:
    """NaN if one side does not vary; Spark returns NULL, as it does without rows."""
    if isinstance(node.parent, exp.Filter | exp.Window):
        raise refuse("corr() with FILTER or OVER")
    return spelled(
        _CORRELATION if is_corr_total() else _BY_DEVIATIONS,
        node.this,
        node.expression,
        like="DOUBLE",
    )


NUMBER_REWRITES: Final[Rewrites] = {
    exp.Div: divide,
    exp.Mul: single_precision,
    exp.Neg: negated,
    exp.Ln: lambda node: _logarithm("LN", node.this),
    exp.Log: _log,
    exp.Round: _round,
    exp.Corr: _correlation,
}
