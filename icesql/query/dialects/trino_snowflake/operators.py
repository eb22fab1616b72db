"""Operators and casts whose meaning depends on the types of their operands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import functions
from icesql.query.dialects.templates import expanded
from icesql.query.dialects.trino_snowflake.nan import SIGNS, compared
from icesql.query.dialects.trino_snowflake.types import (
    ARRAY,
    DECIMAL,
    INTERVAL,
    T,
    described,
    type_of_cast,
    typed,
    word,
)
from icesql.query.dialects.types import SqlType

if TYPE_CHECKING:
    from icesql.query.dialects.trino_snowflake.translation import Translation

_SAME_TEXT: Final = frozenset({"text", "integer", "decimal", "boolean", "date", "null", "uuid"})
_FRACTION: Final = re.compile(r"\.(\d+)")
_BY_ZERO: Final = "error('Division by zero')"


def rewritten(self: Translation, node: exp.Expr) -> exp.Expr | None:
    """The replacement of a node, the same node if it is not handled, None to keep it."""
    match node:
        case exp.Div() | exp.Mod():
            return _divided(self, node)
        case exp.Add() | exp.Sub():
            return _moved(self, node)
        case exp.Cast():
            return cast(self, node, node.this, node.to, safe=isinstance(node, exp.TryCast))
        case exp.Bracket():
            return _subscript(self, node)
        case exp.ILike() if self.dialect == "snowflake":
            return None
        case exp.Between() if self.dialect == "trino":
            return compared(self, node)
        case _ if self.dialect == "trino" and node.key in SIGNS:
            return compared(self, node)
        case exp.Trim():
            return _trim(self, node)
        case exp.StrPosition() if not node.args.get("position") and not node.args.get("occurrence"):
            return expanded("strpos($1, $2)", node.this, node.args["substr"], exact=False)
        case exp.Unnest():
            _check_unnest(self, node)
            return None
        case exp.Values():
            _name_values(self, node)
            return None
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            return None
        case exp.Any() | exp.All() if not isinstance(node.this, exp.Query | exp.Subquery):
            raise self.refuse(f"{node.key.upper()} of a list", node)
        case exp.Any() | exp.All() if isinstance(node.parent, exp.Like | exp.ILike):
            raise self.refuse(f"LIKE {node.key.upper()}", node)
        case exp.Group() if node.args.get("grouping_sets") and node.expressions:
            raise self.refuse("GROUPING SETS without a comma before it", node)
        case exp.Column() if node.args.get("join_mark"):
            raise self.refuse("an outer join by (+)", node, "write LEFT JOIN")
        case exp.In() if node.args.get("unnest"):
            raise self.refuse("IN UNNEST", node)
        case exp.DPipe() | exp.Concat():
            return _joined(self, node)
        case exp.Expression() if node.key == "limitoptions":
            if node.args.get("percent") or node.args.get("with_ties"):
                raise self.refuse("FETCH … PERCENT or WITH TIES", node)
            return None
    return node


def _numbers(self: Translation, node: exp.Expr) -> set[str]:
    """The kinds of two operands. Refuses operands that are not numbers or NULL."""
    types = [self.type(node.this), self.type(node.expression)]
    sign = "/" if isinstance(node, exp.Div) else "%"
    if t.UNKNOWN in types:
        raise self.refuse(f"{sign} of a value whose type is not known", node, "CAST it to its type")
    kinds = {each.kind for each in types} - {"null"}
    if not kinds <= {*t.NUMERIC}:
        words = sorted({word(each) for each in types if each != t.NULL})
        raise self.refuse(f" {sign} ".join(words), node)
    return kinds


def _divided(self: Translation, node: exp.Div | exp.Mod) -> exp.Expr | None:
    """A quotient or remainder, an error if the divisor is zero; None if DuckDB's is the same."""
    left, right = node.this, node.expression
    divisor = f"CASE WHEN $2 = 0 AND $1 IS NOT NULL THEN {_BY_ZERO} ELSE $2 END"
    if isinstance(right, exp.Literal) and not right.is_string and float(right.name) != 0:
        divisor = "$2"
        if isinstance(node, exp.Mod):
            return None
    kinds = _numbers(self, node)
    # Division by zero gives Infinity or NaN.
    by_zero = self.dialect == "trino" and kinds & {*t.FRACTIONAL}
    if isinstance(node, exp.Mod):
        made = None if by_zero else expanded(f"$1 % {divisor}", left, right)
        return made and typed(made, DECIMAL if "decimal" in kinds else t.BIGINT)
    if kinds & {*t.FRACTIONAL}:
        text = f"CAST($1 AS DOUBLE) / CAST({'$2' if by_zero else divisor} AS DOUBLE)"
        return typed(expanded(text, left, right), t.DOUBLE)
    if "decimal" in kinds:
        raise self.refuse("/ of a decimal", node, "CAST an operand to DOUBLE")
    if self.dialect == "trino":
        return typed(expanded(f"$1 // {divisor}", left, right), t.BIGINT)
    return typed(quotient(left, expanded(divisor, left, right)), DECIMAL)


def quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Quotient of integers, with six digits after the point, rounded half away from zero."""
    size = "(2 * abs(CAST($1 AS HUGEINT)) * 1000000 + abs($2)) // (2 * abs($2))"
    return expanded(
        f"CAST(CASE WHEN ($1 < 0) <> ($2 < 0) THEN -({size}) ELSE {size} END "
        "AS DECIMAL(32,0)) * CAST('0.000001' AS DECIMAL(6,6))",
        left,
        right,
    )


def _moved(self: Translation, node: exp.Add | exp.Sub) -> exp.Expr | None:
    """Cast a date plus an interval to a date, because it is a timestamp in DuckDB."""
    types = [self.type(node.this), self.type(node.expression)]
    if INTERVAL in types and t.DATE in types:
        return exp.Cast(this=node.copy(), to=exp.DataType.build("DATE"))
    if types == [t.DATE, t.DATE] and self.dialect == "trino":
        raise self.refuse("date - date", node, "write date_diff('day', …)")
    if INTERVAL in types and t.UNKNOWN in types:
        raise self.refuse(
            "an interval and a value whose type is not known", node, "CAST it to its type"
        )
    return None


def _subscript(self: Translation, node: exp.Bracket) -> exp.Expr:
    type = self.type(node.this)
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise self.refuse("a slice", node)
    index = node.expressions[0]
    text = _ELEMENTS.get((self.dialect, type.kind))
    if text is None or (type.kind == "array" and self.type(index).kind not in t.INTEGRAL):
        raise self.refuse(f"a subscript of {described(type)}", node)
    return expanded(text, node.this, index)


_ELEMENTS: Final = {
    ("trino", "array"): (
        "CASE WHEN $2 BETWEEN 1 AND len($1) THEN list_extract($1, $2) WHEN $1 IS NOT NULL "
        "AND $2 IS NOT NULL THEN error('Array subscript is out of bounds') END"
    ),
    ("snowflake", "array"): "CASE WHEN $2 >= 0 THEN list_extract($1, $2 + 1) END",
    ("trino", "map"): (
        "CASE WHEN map_contains($1, $2) THEN map_extract_value($1, $2) "
        "WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN error('Key not present in map') END"
    ),
    ("snowflake", "map"): "map_extract_value($1, $2)",
}


def _trim(self: Translation, node: exp.Trim) -> exp.Expr:
    where = str(node.args.get("position") or "BOTH").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}[where]
    characters = node.args.get("expression")
    if characters is not None:
        return typed(expanded(f"{name}($1, $2)", node.this, characters), t.STRING)
    # Trino trims all white space, DuckDB's trim only spaces.
    text = functions("trino")[name][0].text if self.dialect == "trino" else f"{name}($1)"
    return typed(expanded(text, node.this), t.STRING)


def _check_unnest(self: Translation, node: exp.Unnest) -> None:
    if node.args.get("offset") or len(node.expressions) != 1:
        raise self.refuse("UNNEST of several arrays or WITH ORDINALITY", node)
    if self.type(node.expressions[0]).kind != "array":
        raise self.refuse("UNNEST of what is not known to be an array", node)


def _name_values(self: Translation, node: exp.Values) -> None:
    """Name the columns of VALUES without an alias as the dialect does."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return
    first = node.expressions[0]
    count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    if alias is None:
        alias = exp.TableAlias(this=exp.to_identifier("_values"))
        node.set("alias", alias)
    name, start = ("_col", 0) if self.dialect == "trino" else ("column", 1)
    columns = [exp.to_identifier(f"{name}{at + start}") for at in range(count)]
    alias.set("columns", columns)


def _joined(self: Translation, node: exp.DPipe | exp.Concat) -> exp.Expr | None:
    for each in (node.this, node.expression) if isinstance(node, exp.DPipe) else ():
        type = self.type(each)
        if type.kind == "array":
            node.meta["type"] = ARRAY
        if type.kind in (*t.FRACTIONAL, t.NTZ.kind, t.TIMESTAMP.kind):
            raise self.refuse(f"|| of a {word(type)}", node)
    return None


# ---------------------------------------------------------------------- casts


def cast(
    self: Translation, node: exp.Expr, value: exp.Expr, to: exp.DataType, *, safe: bool = False
) -> exp.Expr | None:
    """``value`` cast to ``to``; None if DuckDB's own cast is the same."""
    wanted, given = type_of_cast(to), self.type(value)
    if wanted is None or wanted.kind in ("array", "map"):
        raise self.refuse(f"a cast to {to.sql(dialect=self.dialect)}", node)
    if given == t.VARIANT:
        raise self.refuse("a cast of a variant", node)
    function, name = "TRY_CAST" if safe else "CAST", to.sql(dialect="duckdb")
    is_trino, text = self.dialect == "trino", ""
    match word(wanted), word(given):
        case "integer", "double":
            text = f"{function}(round($1) AS {name})"
        case "integer", "text" if is_trino:
            wrong = "NULL" if safe else "error('Cannot cast varchar to a number')"
            text = (
                f"CASE WHEN regexp_full_match($1, '[+-]?[0-9]+') THEN {function}($1 AS {name}) "
                f"WHEN $1 IS NOT NULL THEN {wrong} END"
            )
        case "integer", "unknown":
            text = (
                "CASE WHEN typeof($1) IN ('DOUBLE', 'FLOAT') "
                f"THEN {function}(round(TRY_CAST($1 AS DOUBLE)) AS {name}) "
                f"ELSE {function}($1 AS {name}) END"
            )
        case "integer", "date" | "timestamp" | "timestamptz" | "array" | "map" | "row":
            raise self.refuse(f"a cast of a {word(given)} to {name}", node)
        case "decimal", _:
            for each in (38, 0)[len(to.expressions) :]:
                to.append("expressions", exp.DataTypeParam(this=exp.Literal.number(each)))
        case "boolean", "text" if not is_trino:
            # DuckDB's cast does not accept "on" and "off".
            (row,) = functions(self.dialect)["try_to_boolean" if safe else "to_boolean"]
            text = row.text
        case "double", _ if not is_trino:
            to.set("this", T.DOUBLE)
        case "text", _:
            text = _to_text(self, node, given, to, function)
        case "timestamp" | "timestamptz" | "time", _:
            _check_precision(self, node, value, given, to)
            if isinstance(value, exp.Literal) and value.name.endswith(" UTC"):
                # In this form a condition on it prunes.
                value.set("this", value.name.removesuffix(" UTC") + "+00:00")
            to.set("expressions", None)
    return typed(expanded(text, value), wanted) if text else None


def _to_text(
    self: Translation, node: exp.Expr, given: SqlType, to: exp.DataType, function: str
) -> str:
    """DuckDB's expression of a cast to text, "" for its own cast."""
    if word(given) not in _SAME_TEXT:
        hint = "" if given == t.UNKNOWN else "its text is another than DuckDB's; use a format"
        raise self.refuse(f"a cast of {described(given)} to text", node, hint)
    if to.this in (T.CHAR, T.NCHAR) and self.dialect == "trino":
        raise self.refuse("a cast to CHAR, which pads with spaces,", node, "cast to VARCHAR")
    size = to.expressions[0].name if to.expressions else ""
    if to.this in (T.CHAR, T.NCHAR) and not size:
        size = "1"
    if not size.isdigit() or int(size) > 1_000_000:
        to.set("expressions", None)
        return ""
    text = f"{function}($1 AS VARCHAR)"
    if self.dialect == "trino":
        return f"left({text}, {size})"
    too_long = "NULL" if function == "TRY_CAST" else _TOO_LONG
    return f"CASE WHEN length({text}) > {size} THEN {too_long} ELSE {text} END"


_TOO_LONG: Final = "error('String is too long and would be truncated')"


def _check_precision(
    self: Translation, node: exp.Expr, value: exp.Expr, given: SqlType, to: exp.DataType
) -> None:
    """Refuse a cast that would round: TIMESTAMP(n) keeps n digits, DuckDB's TIMESTAMP six."""
    given_digits = to.expressions[0].name if to.expressions else ""
    digits = int(given_digits) if given_digits.isdigit() else 3 if self.dialect == "trino" else 9
    if digits >= 6 or given in (t.DATE, t.NULL):
        return
    if isinstance(value, exp.Literal):
        found = _FRACTION.search(value.name)
        if found is None or len(found[1].rstrip("0")) <= digits:
            return
    raise self.refuse(
        f"a cast to {to.sql(dialect=self.dialect)}, which keeps {digits} digits of a second,",
        node,
        "cast to TIMESTAMP(6)",
    )
