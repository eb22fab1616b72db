"""Operators and casts whose meaning depends on the types of their operands, and those types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import expanded, functions
from icesql.query.dialects.queries import Scope, below
from icesql.query.dialects.types import SqlType

if TYPE_CHECKING:
    from icesql.query.dialects.trino_snowflake.translation import Translation


# ------------------------------------------------------------------ types


T: Final = exp.DataType.Type
INTERVAL: Final = SqlType("interval")
ARRAY: Final = SqlType("array")
MAP: Final = SqlType("map")
ROW: Final = SqlType("struct")
DECIMAL: Final = SqlType("decimal")
TIME: Final = SqlType("time")

_OF_CASTS: Final[dict[Any, SqlType]] = {
    **{name: of for name, of in t.NAMED.items() if of != t.NULL},
    **dict.fromkeys((T.TINYINT, T.SMALLINT, T.INT), t.BIGINT),
    T.FLOAT: t.DOUBLE,
    T.DECIMAL: DECIMAL,
    **dict.fromkeys((T.NCHAR, T.NVARCHAR), t.STRING),
    **dict.fromkeys((T.TIMESTAMP, T.DATETIME), t.NTZ),
    T.TIME: TIME,
    T.UUID: t.UUID,
    T.ARRAY: ARRAY,
    T.MAP: MAP,
}  # fmt: skip
_WORDS: Final = {
    **dict.fromkeys(t.INTEGRAL, "integer"),
    **dict.fromkeys(t.FRACTIONAL, "double"),
    "string": "text",
    t.NTZ.kind: "timestamp",
    t.TIMESTAMP.kind: "timestamptz",
    ROW.kind: "row",
}


def word(of: SqlType) -> str:
    """The name of a type in messages."""
    return _WORDS.get(of.kind, of.kind)


def described(of: SqlType) -> str:
    """A value of a type in messages."""
    return "a value whose type is not known" if of == t.UNKNOWN else f"a {word(of)}"


def typed(made: exp.Expr, type: SqlType) -> exp.Expr:
    """``made`` with its type, which ``type_of`` then knows."""
    made.meta["type"] = type
    return made


def type_of_cast(to: exp.DataType) -> SqlType | None:
    """The type of a cast's target; None for a type that neither dialect has."""
    return _OF_CASTS.get(to.this)


def converted(argument: SqlType, wanted: SqlType) -> SqlType | None:
    """The argument's own type if DuckDB accepts it for a parameter of type ``wanted``."""
    fits = (
        argument.kind in (wanted.kind, "null")
        or (argument.kind in t.INTEGRAL and wanted.kind in t.INTEGRAL)
        or (argument.kind in t.NUMERIC and wanted == t.DOUBLE)
    )
    return argument if fits else None


def common(types: Iterable[SqlType]) -> SqlType:
    """The common type of these types; types other than numbers have to be equal."""
    found = t.NULL
    for each in types:
        if each.kind == "null" or found.kind == "null" or {each.kind, found.kind} <= _NUMBERS:
            found = t.common(found, each) or t.UNKNOWN
        elif each.kind != found.kind:
            return t.UNKNOWN
    return found


_NUMBERS: Final = frozenset(t.NUMERIC)


def type_of(node: exp.Expr, scope: Scope) -> SqlType:
    """The type of a translated expression, from its ``meta`` if set; UNKNOWN if undecided."""
    known = node.meta.get("type")
    if isinstance(known, SqlType):
        return known
    match node:
        case exp.Literal():
            return t.STRING if node.is_string else _type_of_number(node.name)
        case exp.Boolean():
            return t.BOOLEAN
        case exp.Null():
            return t.NULL
        case exp.Distinct():
            return type_of(node.expressions[0], scope)
        case (
            exp.Paren() | exp.Alias() | exp.Neg() | exp.Order() | exp.RespectNulls()
            | exp.Window() | exp.Filter() | exp.IgnoreNulls() | exp.WithinGroup()
        ) if node.this:  # fmt: skip
            return type_of(node.this, scope)
        case exp.Cast():
            return type_of_cast(node.to) or t.UNKNOWN
        case exp.Interval():
            return INTERVAL
        case exp.CurrentDate():
            return t.DATE
        case exp.CurrentTimestamp():
            return t.TIMESTAMP
        case exp.Localtimestamp():
            return t.NTZ
        case exp.DPipe() | exp.Concat():
            return t.STRING
        case exp.Array():
            return ARRAY
        case exp.Struct() | exp.Tuple():
            return ROW
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.Exists() | exp.Like():
            return t.BOOLEAN
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
            return arithmetic(type_of(node.this, scope), type_of(node.expression, scope))
        case exp.Case():
            branches = [each.args.get("true") for each in node.args.get("ifs") or ()]
            values = [*branches, node.args.get("default")]
            return common(type_of(each, scope) for each in values if each is not None)
        case exp.Column():
            return scope.type_of([part.name for part in node.parts])
        case exp.Dot():
            return below(type_of(node.this, scope), [node.expression.name])
        case _:
            return t.UNKNOWN


def arithmetic(left: SqlType, right: SqlType) -> SqlType:
    """The type of ``+ - *`` with operands of two types."""
    kinds = {left.kind, right.kind}
    if kinds <= _NUMBERS:
        return t.common(left, right) or t.UNKNOWN
    if INTERVAL.kind in kinds and kinds & {*t.MOMENTS}:
        return left if left.kind in t.MOMENTS else right
    if INTERVAL.kind in kinds and kinds <= {INTERVAL.kind, *t.INTEGRAL}:
        return INTERVAL
    return t.UNKNOWN


def _type_of_number(text: str) -> SqlType:
    if "e" in text.lower():
        return t.DOUBLE
    return DECIMAL if "." in text else t.BIGINT


# ------------------------------------------------------------------ NaN
# In Trino, by IEEE 754, NaN is not equal to, less or greater than anything, except in ORDER BY,
# GROUP BY, DISTINCT and IS DISTINCT FROM. In DuckDB, Spark and Snowflake it is equal to itself and
# greater than all other numbers. A comparison of NaN and NULL is NULL.


SIGNS: Final = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


def compared(self: Translation, node: exp.Expr) -> exp.Expr:
    """A comparison or BETWEEN that is false for NaN; ``node`` itself if NaN makes no difference."""
    if isinstance(node, exp.Between):
        parts = (node.this, node.args["low"], node.args["high"])
        if not _may_be_nan(self, parts[2]):
            return node
        text = "$1 BETWEEN $2 AND $3 AND (NOT isnan($3) OR $1 IS NULL)"
        return typed(expanded(text, *parts, exact=False), t.BOOLEAN)
    left, right = node.this, node.expression
    sign = SIGNS[node.key]
    if sign in ("=", "<>"):
        if not (_may_be_nan(self, left) and _may_be_nan(self, right)):
            return node
        more = "AND (NOT isnan($1) OR $2 IS NULL)" if sign == "=" else "OR isnan($1) AND isnan($2)"
    else:
        sides = {"$1": left, "$2": right}
        greater, other = sorted(sides, reverse=sign[0] == "<")
        if not _may_be_nan(self, sides[greater]):
            return node
        more = f"AND NOT isnan({greater})"
        if not _is_number(sides[other]):
            more = f"AND (NOT isnan({greater}) OR {other} IS NULL)"
    return typed(expanded(f"$1 {sign} $2 {more}", left, right, exact=False), t.BOOLEAN)


def _may_be_nan(self: Translation, node: exp.Expr) -> bool:
    return self.type(node).kind in t.FRACTIONAL and not _is_number(node)


def _is_number(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node.is_number


# ------------------------------------------------------------------ operators


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
