"""Operators and casts in Spark's spelling, where the same text has another meaning in Spark.

DuckDB's meaning wins: ``/`` gives a double and x/0 an infinity, CAST rounds, ``date - date`` counts
days, list indexes start at 1 and negative ones count from the end, text of a timestamptz has its
offset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlglot import exp

from icesql.engine.spark.sql.kinds import (
    identifier,
    kind,
    kind_of_type,
    literal_integer,
    literal_text,
    refuse,
    row_of,
    rows,
    spelled,
    string,
)
from icesql.engine.spark.sql.nanos import NANOS, compare, micros, nanoseconds
from icesql.engine.spark.sql.numbers import decimal_of_double, single_precision
from icesql.engine.spark.sql.texts import number_of_text, time_of_text
from icesql.engine.spark.sql.zones import at_time_zone, instant_of_local

_UNSIGNED: Final = frozenset({"UTINYINT", "USMALLINT", "UINT", "UBIGINT", "UINT128"})
# Text that is compared or combined with one of these kinds is converted to it.
_FROM_TEXT: Final = ("blob", "time", "uuid", "timestamptz", "timestamp", "date")
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Lag, exp.Lead, exp.PercentRank,
          exp.CumeDist)  # fmt: skip
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
# Those of MAKE_INTERVAL, in its order.
_UNITS: Final = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_NESTED: Final = ("list", "struct", "map")


def rewrite_operator(node: exp.Expr, timezone: str) -> exp.Expr:
    """The node, or its replacement in Spark. Raises UnsupportedSqlError."""
    for values in _together(node):
        _read_texts(node, values, timezone)
    match node:
        case exp.Cast():
            return _cast(node, timezone)
        case exp.Add() | exp.Sub():
            return _add(node, timezone)
        case exp.Bracket():
            return _subscript(node)
        case exp.Like() | exp.ILike():
            return _like(node)
        case exp.DPipe() | exp.Concat() | exp.ConcatWs():
            return _concatenated(node)
        case exp.Collate():
            raise refuse("COLLATE")
        case exp.Window() if isinstance(node.this, _RANKS) and node.args.get("order") is None:
            # Without an order any numbering is correct, but Spark requires one.
            node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Null())]))
        case (
            exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Nullif() | exp.Case() | exp.Array()
        ):
            _check_mixed(node, timezone)
        case exp.AtTimeZone():
            return at_time_zone(node, timezone)
        case exp.In() if node.expressions:
            _compare([node.this, *node.expressions], timezone)
        case exp.Between():
            _compare([node.this, node.args["low"], node.args["high"]], timezone)
        case _ if isinstance(node, COMPARISONS):
            _compare([node.this, node.expression], timezone, both_ways=True)
    return node


def _compare(values: list[exp.Expr], timezone: str, *, both_ways: bool = False) -> None:
    """Convert the first value and the others, which are compared with it, to one type."""
    if compare(values, timezone):
        return
    first, *others = values
    for each in others:
        kinds = kind(first), kind(each)
        _compare_as(kinds[0], each, timezone)
        _widen(first, each)
        if both_ways:
            _compare_as(kinds[1], first, timezone)
            _widen(each, first)


def _together(node: exp.Expr) -> Sequence[Sequence[Any]]:
    """Groups of values that ``node`` converts to one type; None in a group is no value."""
    match node:
        case exp.Between():
            return [[node.this, node.args["low"], node.args["high"]]]
        case exp.Case():
            results = [each.args["true"] for each in node.args["ifs"]]
            compared = [each.this for each in node.args["ifs"]] if node.this else []
            return [[node.this, *compared], [*results, node.args.get("default")]]
        case exp.If() if not isinstance(node.parent, exp.Case):
            return [[node.args["true"], node.args.get("false")]]
        case exp.Lag() | exp.Lead():
            return [[node.this, node.args.get("default")]]
        case exp.Values():
            return list(zip(*(each.expressions for each in node.expressions), strict=False))
        case exp.SetOperation():
            return list(zip(node.left.selects, node.right.selects, strict=False))
        case exp.In() if "query" in node.args:
            return [[node.this, node.args["query"].selects[0]]]
        case exp.Bracket() if kind(node.this) != "map":
            return []
        case (exp.In() | exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Array()
              | exp.Nullif() | exp.ArrayContains() | exp.Bracket()):  # fmt: skip
            return [[node.this, node.expression, *node.expressions]]
        case _ if isinstance(node, COMPARISONS):
            return [[node.this, node.expression]]
        case _:
            return []


def _read_texts(node: exp.Expr, values: Sequence[Any], timezone: str) -> None:
    """Convert literal texts to the other type of their group; refuse text that is not a literal."""
    values = [each for each in values if isinstance(each, exp.Expression)]
    for kinds in zip(*map(_leaves, values), strict=False):
        other = next((each for each in _FROM_TEXT if each in kinds), None)
        if other is None or NANOS.intersection(kinds):
            continue
        for each in (each for each, found in zip(values, kinds, strict=True) if found == "text"):
            # Outer expressions use these columns, and the result of nullif(), as texts.
            named = isinstance(node, exp.Values | exp.SetOperation | exp.Nullif)
            if literal_text(each.unnest()) is None or (named and each is not node.expression):
                raise refuse(f"text beside a {other}", "CAST it to that type")
            target = exp.DataType.build(other.upper(), dialect="duckdb")
            cast = exp.Cast(this=each.unnest().copy(), to=target)
            cast.type = target
            each.replace(_cast(cast, timezone))


def _leaves(node: exp.Expr) -> list[str]:
    """The kind of a value, or the kinds inside of a tuple, list, struct or map."""
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    if isinstance(node, exp.Tuple):
        return [found for each in node.expressions for found in _leaves(each)]
    if kind(node) not in _NESTED or node.type is None:
        return [kind(node)]
    kinds = map(kind_of_type, node.type.find_all(exp.DataType))
    return [each for each in kinds if each not in _NESTED]


def _check_mixed(node: exp.Expr, timezone: str) -> None:
    """Refuse to mix instants and local times: of two instants, Spark chooses the earlier one.

    The local engine chooses the later one. Mixes of nanoseconds and other times are refused, too.
    """
    values = _together(node)[-1]
    kinds = {kind(each) for each in values if isinstance(each, exp.Expression)}
    if kinds & NANOS and len(kinds - {"null"}) > 1:
        raise refuse("a mix of nanoseconds and other times", "CAST them to one type")
    if timezone != "UTC" and "timestamptz" in kinds and kinds & {"timestamp", "date"}:
        raise refuse("a mix of instants and local times", "CAST one of them")


def _widen(node: exp.Expr, literal: exp.Expr) -> None:
    """Prevent Spark from evaluating ``NULL < 9223372036854775808`` as true for integers."""
    while isinstance(literal, exp.Paren | exp.Neg):
        literal = literal.this
    if not isinstance(literal, exp.Literal) or literal.is_string or kind(node) != "integer":
        return
    if Decimal(literal.name) >= 2**63:
        node.replace(spelled("CAST({0} AS DECIMAL(38,0))", node, like="HUGEINT"))


def _compare_as(other: str, node: exp.Expr, timezone: str) -> None:
    """Give a comparison with an operand of kind ``other`` its meaning in DuckDB."""
    own = kind(node)
    if other == "float" and own in ("decimal", "integer"):
        # DuckDB compares a FLOAT with a decimal or an integer as FLOATs.
        node.replace(spelled("CAST({0} AS FLOAT)", node, like="FLOAT"))
    elif other == "timestamptz" and own in ("timestamp", "date") and timezone != "UTC":
        node.replace(instant_of_local(node, timezone))
    elif own != other and "time" in (own, other) and not {own, other} & {"unknown", "null"}:
        raise refuse(f"a comparison of a {own} with a {other}")


def _concatenated(node: exp.DPipe | exp.Concat | exp.ConcatWs) -> exp.Expr:
    for each in node.expressions or [node.this, node.expression]:
        match kind(each):
            case "text" | "null" | "uuid" | "unknown":
                pass
            case "list" if isinstance(node, exp.DPipe):
                pass
            case "integer" | "decimal" | "date" | "boolean" | "timestamp":
                # Spark would convert the other text to a number.
                each.replace(spelled("CAST({0} AS STRING)", each, like="VARCHAR"))
            case "float" | "double" | "timestamptz":
                raise refuse("text of a floating-point number or instant by concatenation")
            case other:
                raise refuse(f"text of a {other} by concatenation")
    return node


def _add(node: exp.Add | exp.Sub, timezone: str) -> exp.Expr:
    left, right = kind(node.this), kind(node.expression)
    sign = "+" if isinstance(node, exp.Add) else "-"
    match left, right:
        case "date", "interval":
            return _shift(node.this, sign, node.expression, "date")
        case "timestamp" | "timestamptz", "interval":
            return _shift(node.this, sign, node.expression, left)
        case "interval", "date" | "timestamp" | "timestamptz" if sign == "+":
            return _shift(node.expression, sign, node.this, right)
        case "date", "date":
            return spelled("DATEDIFF({0}, {1})", node.this, node.expression, like="BIGINT")
        case "date", "integer":
            return spelled(f"DATE_ADD({{0}}, {'' if sign == '+' else '-'}({{1}}))",
                           node.this, node.expression, like="DATE")  # fmt: skip
        case "timestamp" | "timestamptz" | "date", "timestamp" | "timestamptz" | "date":
            if "timestamptz" in (left, right) and timezone != "UTC":
                # The local engine counts days in the session's time zone.
                raise refuse("a difference of instants", "use date_diff() or epoch()")
            return spelled(
                "(CAST({0} AS TIMESTAMP_NTZ) - CAST({1} AS TIMESTAMP_NTZ))",
                node.this,
                node.expression,
                like="INTERVAL",
            )
        case ("interval", _) | (_, "interval"):
            raise refuse("arithmetic of intervals")
        case _ if {left, right} & {"time", "uuid", *NANOS}:
            raise refuse("arithmetic of a time, uuid or nanosecond timestamp")
    return single_precision(node)


def _shift(base: exp.Expr, sign: str, interval: exp.Expr, base_kind: str) -> exp.Expr:
    start = "CAST({0} AS TIMESTAMP_NTZ)" if base_kind == "date" else "{0}"
    result = "TIMESTAMPTZ" if base_kind == "timestamptz" else "TIMESTAMP"
    while isinstance(interval, exp.Paren):
        interval = interval.this
    if not isinstance(interval, exp.Interval):
        raise refuse("arithmetic with an interval other than an INTERVAL literal")
    unit = str(interval.args.get("unit") or "").upper().rstrip("S")
    amount = interval.this
    if unit not in _UNITS:
        raise refuse(f"INTERVAL … {unit}".strip())
    text = literal_text(amount)
    number = str(amount.this) if isinstance(amount, exp.Literal) else None
    if (text or number or "").lstrip("-").isdigit():
        return spelled(f"({start} {sign} INTERVAL '{text or number}' {unit})", base, like=result)
    if text is not None:
        raise refuse(f"INTERVAL '{text}' {unit}")
    place = _UNITS.index(unit)
    zeros = ", ".join("0" if at != place else "CAST({1} AS INT)" for at in range(7))
    return spelled(f"({start} {sign} MAKE_INTERVAL({zeros}))", base, amount, like=result)


def _subscript(node: exp.Bracket) -> exp.Expr:
    if len(node.expressions) != 1:
        raise refuse("several subscripts")
    (index,) = node.expressions
    whole = node.this
    match kind(whole):
        case "map":
            return spelled("TRY_ELEMENT_AT({0}, {1})", whole, index, like=node)
        case "struct":
            name = literal_text(index)
            if name is None:
                raise refuse("a struct field by its number")
            made = exp.Dot(this=whole.copy(), expression=identifier(name))
            made.type = node.type
            return made
        case "list":
            pass
        case _:
            raise refuse("a subscript of a value that is not a list, map or struct column")
    if isinstance(index, exp.Slice):
        first = 1 if index.this is None else literal_integer(index.this)
        last = literal_integer(index.expression)
        if first is None or first < 1 or last is None or last < 0 or index.args.get("step"):
            raise refuse("a list slice without positive literal bounds")
        return spelled(f"SLICE({{0}}, {first}, {max(0, last - first + 1)})", whole, like=node)
    if int(node.args.get("offset") or 0) != 1:
        index = spelled("({0} + 1)", index, like=index)
    return spelled("TRY_ELEMENT_AT({0}, CAST(NULLIF({1}, 0) AS INT))", whole, index, like=node)


def _like(node: exp.Like | exp.ILike) -> exp.Expr:
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or node.args.get("escape"):
        return node
    text = literal_text(pattern)
    if text is not None:
        if "\\" in text:
            # DuckDB's LIKE has no escape character unless the query names one.
            node.set("expression", string(text.replace("\\", "\\\\")))
        return node
    node.set("expression", spelled("REPLACE({0}, '\\\\', '\\\\\\\\')", pattern, like="VARCHAR"))
    return node


# ------------------------------------------------------------------ casts


def _cast(node: exp.Cast, timezone: str) -> exp.Expr:
    source, target = kind(node.this), kind_of_type(node.to)
    word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    inner = node.this
    match source, target:
        case "timestamp" | "date", "timestamptz" if timezone != "UTC":
            return instant_of_local(inner, timezone)
        case _, "timestamp_ns" | "timestamptz_ns" if source not in ("null", target):
            return nanoseconds(node, word, timezone)
        case "timestamp_ns" | "timestamptz_ns", "date" | "timestamp" | "timestamptz":
            node = node.copy()
            node.set("this", micros(node.this))
            return _cast(node, timezone)
        case "text", "integer" | "float" | "double" | "decimal":
            return number_of_text(node, word, _type_name(node.to))
        case "float" | "double", "decimal":
            precision, scale = _decimal_parts(node.to)
            return decimal_of_double(node, word, precision, scale)
        case "text", "blob":
            text = literal_text(inner)
            if text is None:
                raise refuse("CAST of text to BLOB")
            return spelled(f"X'{_blob(text).hex()}'", like=node)
        case "text", "uuid":
            return string(_uuid_text(inner))
        case "text", "time":
            text = literal_text(inner)
            if text is None:
                raise refuse("a CAST of text to TIME")
            return spelled(str(_time_micros(text)), like=node)
        case "text", "date" | "timestamp" | "timestamptz":
            return time_of_text(inner, node, word, target)
    row = row_of("CAST", (source, target))
    assert row is not None
    template, like = row[0].replace("$CAST", word), row[1]
    if "$TYPE" in template:
        template = template.replace("$TYPE", _type_name(node.to))
    return spelled(template, inner, like=like or node)


def _type_name(node: exp.DataType) -> str:
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    found = kind_of_type(node)
    if name in _UNSIGNED:
        raise refuse("a CAST to an unsigned integer")
    for each in (name, found):
        if each in rows("types"):
            return rows("types")[each][0][0]
    match found:
        case "decimal":
            precision, scale = _decimal_parts(node)
            return f"DECIMAL({precision}, {scale})"
        case "list":
            return f"ARRAY<{_type_name(node.expressions[0])}>"
        case "map":
            key, value = node.expressions
            return f"MAP<{_type_name(key)}, {_type_name(value)}>"
        case "unknown" | "interval" | "struct":
            raise refuse(f"a CAST to {node.sql(dialect='duckdb')}")
        case _:
            return found.upper()


def _decimal_parts(node: exp.DataType) -> tuple[int, int]:
    parts = [int(each.name) for each in node.expressions] or [18, 3]
    return parts[0], parts[1] if len(parts) == 2 else 0


def _blob(text: str) -> bytes:
    if not text.isascii() or re.search(r"\\(?!x[0-9A-Fa-f]{2})", text):
        raise refuse("a CAST of such text to BLOB")
    return re.sub(rb"\\x(..)", lambda found: bytes.fromhex(found[1].decode()), text.encode())


def _uuid_text(node: exp.Expr) -> str:
    text = literal_text(node)
    try:
        return str(UUID(text))
    except (TypeError, ValueError) as error:
        raise refuse("a CAST of text to UUID") from error


def _time_micros(text: str) -> int:
    from datetime import time

    try:
        value = time.fromisoformat(text)
    except ValueError as error:
        raise refuse(f"TIME '{text}'") from error
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
