"""Adapt expressions over types that DuckDB does not mix with others: nanoseconds and UUIDs.

DuckDB does not compare TIMESTAMPTZ_NS with TIMESTAMPTZ, has no functions and no arithmetic for it,
truncates nanoseconds towards 1970 instead of down, and accepts no UUID as a string. This module
adds the casts that make such expressions exact: times are compared as whole nanoseconds since 1970
in 128 bits, so that nothing is rounded and instants outside of TIMESTAMP_NS (before 1678, after
2261) work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from icesql.engine.duckdb.sql.read_text import Expression, TextReading, expression
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.column_types import cast_type
from icesql.query.names import SelectScope
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp

# A shifted time's microseconds and its nanoseconds beyond them, by the id of its expression.
_Shifts = dict[int, tuple[Expression, Expression]]
NANOS: Final = (t.TIMESTAMP_NS, t.TIMESTAMPTZ_NS)
_TIMES: Final = (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ)
_TIME_FUNCTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        age century date_part datepart date_trunc datetrunc day dayname dayofmonth dayofweek
        dayofyear decade epoch epoch_ms epoch_us era extract hour isfinite isinf isodow isoyear
        julian last_day microsecond millennium millisecond minute month monthname quarter second
        time_bucket timezone timezone_hour timezone_minute week weekday weekofyear year yearweek
        date_diff datediff date_sub datesub strftime
        """,
    )
)
_TEXT_FUNCTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        ascii bit_length char_length character_length concat_ws contains ends_with suffix instr
        lcase left len length like_escape lower lpad ltrim md5 prefix regexp_extract
        regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
        repeat replace reverse right rpad rtrim sha256 split split_part starts_with str_split
        string_split strlen strpos position substr substring translate trim ucase unicode upper
        not_like_escape ilike_escape not_ilike_escape
        """,
    )
) | {"~~", "!~~", "~~*", "!~~*", "~~~", "^@", "~", "!~"}
_YEAR: Final = r"\s*(\d{1,6})-\d"
# An item of a list of literals; the group is a string's text, and unset for another item.
_ITEM: Final = r"(?:\A|, )(?:'((?:[^']|'')*+)'|[^'])"
_LIST_HINT: Final = "write times as texts between 1678 and 2261"
# Years whose instants all fit into 64-bit nanoseconds since 1970, in any zone.
_FIRST, _LAST = 1678, 2261
# Greater than any instant: the maximum of 64-bit microseconds, as nanoseconds.
_BEYOND: Final = 1 << 80
_GREATEST: Final = (1 << 63) - 1


def has_types(tree: exp.Expr, schemas: Sequence[Schema], *wanted: t.IcebergType) -> bool:
    """True if columns or casts have one of these types."""
    return any(each.type in wanted for schema in schemas for each in t.walk(schema.fields)) or any(
        cast_type(each) in wanted for each in tree.find_all(exp.DataType)
    )


def adapt_types(reading: TextReading) -> None:
    """Adapt the expressions of a text over nanosecond and UUID types."""
    shifts: _Shifts = {}
    for found, node, scope in reading.expressions():
        _Adapter(reading, scope, shifts).adapt(found, node)


class _Adapter:
    """Changes the expressions of one SELECT, inner ones first."""

    def __init__(self, reading: TextReading, scope: SelectScope, shifts: _Shifts) -> None:
        self._reading, self._scope, self._shifts = reading, scope, shifts

    def adapt(self, found: Expression, node: exp.Expr) -> None:
        match found["class"]:
            case "COMPARISON":
                self._compare([found["left"], found["right"]])
            case "BETWEEN":
                self._compare([found["input"], found["lower"], found["upper"]])
            case "OPERATOR" if found["type"] in ("COMPARE_IN", "COMPARE_NOT_IN"):
                self._compare(found["children"])
            case "OPERATOR" if found["type"] == "OPERATOR_COALESCE":
                self._unite(found["children"])
            case "SUBQUERY" if found["subquery_type"] == "ANY":
                self._among_rows(found, node)
            case "CASE":
                results = [each["then_expr"] for each in found["case_checks"]]
                self._unite([*results, found["else_expr"]])
            case "CAST" if isinstance(node, exp.Cast):
                self._cast(found, node)
            case "FUNCTION" | "WINDOW" if not isinstance(node, exp.AtTimeZone):
                self._call(found, node)

    def _of(self, found: Expression | exp.Expr) -> t.IcebergType | None:
        return self._reading.type_of(found, self._scope)

    # ------------------------------------------------------------------ comparisons

    def _compare(self, operands: Sequence[Expression]) -> None:
        types = [self._of(each) for each in operands]
        if not any(each in NANOS for each in types):
            return
        zoned = t.TIMESTAMPTZ_NS in types or t.TIMESTAMPTZ in types
        pairs = list(zip(operands, types, strict=True))
        if all(self._meets(each, kind, types) for each, kind in pairs):
            self._unite(operands)
            return
        for each, kind in pairs:
            if self._reading.list_of(each) is not None:
                raise unsupported("this long list beside nanosecond times", None, _LIST_HINT)
            self._reading.wrap(each, _key, kind, zoned)

    def _meets(
        self, found: Expression, kind: t.IcebergType | None, types: Sequence[t.IcebergType | None]
    ) -> bool:
        """True if DuckDB's own comparison with nanoseconds is exact for this operand."""
        if kind in NANOS:
            return len({each for each in types if each in NANOS}) == 1
        if kind == t.STRING or _literal(found, "NULL_LITERAL") is not None:
            return True
        items = self._reading.list_of(found)
        if items is not None:
            return all(map(_year_fits, re.findall(_ITEM, items)))
        text = _literal(found["child"] if kind in _TIMES and "child" in found else found, "STRING")
        if text is None or (kind == t.TIMESTAMPTZ and t.TIMESTAMP_NS in types):
            return False
        year = re.match(_YEAR, text)
        if year is None:
            return kind is None  # DuckDB rejects text that is not a time
        return _year_fits(text)

    def _among_rows(self, found: Expression, node: exp.Expr) -> None:
        """Compare ``x IN (SELECT y …)`` over two time types by keys on both sides."""
        inner = node.args.get("query") if isinstance(node, exp.In) else None
        if inner is None:
            return
        mine, theirs = self._of(found["child"]), self._of(inner)
        if mine == theirs or not ({mine, theirs} & set(NANOS)):
            return
        zoned = bool({mine, theirs} & {t.TIMESTAMPTZ_NS, t.TIMESTAMPTZ})
        self._reading.wrap(found["child"], _key, mine, zoned)
        key = _key(expression("q.c"), theirs, zoned)
        rows = expression("(SELECT 1 FROM (SELECT 1) AS q(c))")["subquery"]
        rows["node"]["select_list"] = [key]
        rows["node"]["from_table"]["subquery"]["node"] = found["subquery"]["node"]
        found["subquery"] = rows
        self._reading.mark(found)

    # ------------------------------------------------------------ arithmetic, functions, casts

    def _shift(self, found: Expression) -> None:
        first, second = (each["expression"] for each in found["arguments"])
        left, right = self._of(first), self._of(second)
        if left in (*NANOS, *_TIMES) and right in (*NANOS, *_TIMES):
            for each, own in ((first, left), (second, right)):
                if own in NANOS:
                    self._reading.wrap(each, _micros, own)
            return
        moment, kind = (first, left) if left in NANOS else (second, right)
        if kind is None or kind not in NANOS:
            return
        # Months and days are steps on the calendar; the nanoseconds below a µs stay unchanged.
        if (known := self._shifts.get(id(moment))) is not None:
            # Each time occurs once in its replacement, however many steps a sum has.
            micros, fine = known
            self._reading.wrap(moment, lambda _: micros)
        else:
            written = {**moment, "alias": ""}
            fine = _fine(written, _micros(written, kind))
            self._reading.wrap(moment, _micros, kind)
        self._shifts[id(found)] = {**found, "alias": ""}, fine
        self._reading.wrap(found, _shifted, fine, kind)

    def _cast(self, found: Expression, node: exp.Cast) -> None:
        kind = self._of(found["child"])
        is_time = node.to.this == exp.DataType.Type.TIME
        if kind in NANOS and (is_time or cast_type(node.to) in _TIMES):
            self._reading.wrap(found["child"], _instant, kind)
            if is_time:
                self._reading.wrap(found["child"], _cast_to, "TIMESTAMP")

    def _unite(self, values: Sequence[Expression]) -> None:
        """Convert the values of CASE, COALESCE, … to the finer of two precisions."""
        types = [(each, self._of(each)) for each in values]
        if any(kind == t.TIMESTAMPTZ_NS for _, kind in types):
            for each, kind in types:
                if kind == t.TIMESTAMPTZ:
                    self._reading.wrap(each, _cast_to, "TIMESTAMPTZ_NS")

    def _call(self, found: Expression, node: exp.Expr) -> None:
        name, given = found["function_name"].lower(), found["arguments"]
        values = [each["expression"] for each in given]
        if isinstance(node, exp.In):
            # DuckDB parses x IN [a, b] as a call.
            items, value = values
            if node.expressions:
                self._compare([value, *(each["expression"] for each in items["arguments"])])
            return
        if name in ("+", "-") and len(values) == 2:
            self._shift(found)
        elif isinstance(node, exp.Coalesce | exp.Greatest | exp.Least | exp.If):
            self._unite(values)
        if name not in _TEXT_FUNCTIONS and name not in _TIME_FUNCTIONS:
            return
        path = found["qualified_name"]["path"]
        if len(path) > 1 and len(values) < len(list(node.iter_expressions())):
            self._call_of_method(found, name, next(node.iter_expressions()))
        for each in values:
            made = self._argument(name, self._of(each))
            if made is not None:
                self._reading.wrap(each, *made)

    def _call_of_method(self, found: Expression, name: str, column: exp.Expr) -> None:
        """``column.call()``, which DuckDB parses as a function of a schema with that name."""
        made = self._argument(name, self._of(column))
        if made is None:
            return
        make, kind = made
        *names, called = found["qualified_name"]["path"]
        place = {each: found[each] for each in ("query_location", "query_location_length")}
        value = {**expression("x"), **place, "column_names": names}
        found["arguments"].insert(0, {"name": "", "expression": make(value, kind)})
        found.update(schema="", catalog="", qualified_name={"path": [called]})
        self._reading.mark(found)

    def _argument(self, name: str, kind: t.IcebergType | None) -> tuple[Any, Any] | None:
        """The conversion of an argument to a type that the function accepts, or None."""
        if kind == t.UUID and name in _TEXT_FUNCTIONS:
            return _cast_to, "VARCHAR"
        # DuckDB has it for TIMESTAMP_NS, and it keeps the nanoseconds.
        is_kept = kind == t.TIMESTAMP_NS and name == "strftime"
        if kind in NANOS and name in _TIME_FUNCTIONS and not is_kept:
            return _instant, kind
        return None


def _literal(found: Expression, kind: str) -> str | None:
    """The text of a constant of this kind; None for others."""
    literal = found.get("literal") or {}
    return str(literal.get("text", "")) if literal.get("kind") == kind else None


def _key(found: Expression, kind: t.IcebergType | None, zoned: bool) -> Expression:
    """Nanoseconds since 1970 in 128 bits; in the session's time zone if not ``zoned``."""
    if kind == t.TIMESTAMPTZ_NS or (kind == t.TIMESTAMP_NS and not zoned):
        return _nanos(found)
    if kind == t.TIMESTAMP_NS:
        micros = _micros(found, kind)
        instant = expression("CAST(x AS TIMESTAMPTZ)", x=micros)
        fine = _fine(found, micros)
        return expression("CAST(epoch_us(i) AS HUGEINT) * 1000 + x", i=instant, x=fine)
    text = _literal(found, "STRING")
    if text is not None and _year_fits(text):
        exact = "TIMESTAMPTZ_NS" if zoned else "TIMESTAMP_NS"
        return expression(f"CAST(epoch_ns(CAST(x AS {exact})) AS HUGEINT)", x=found)
    moment = expression(f"CAST(x AS {'TIMESTAMPTZ' if zoned else 'TIMESTAMP'})", x=found)
    return expression(
        f"CASE WHEN isfinite(x) THEN CAST(epoch_us(x) AS HUGEINT) * 1000 "
        f"WHEN x > TIMESTAMP '2000-01-01' THEN {_BEYOND} WHEN isinf(x) THEN -{_BEYOND} END",
        x=moment,
    )


def _year_fits(text: str) -> bool:
    year = re.match(_YEAR, text)
    return year is not None and _FIRST <= int(year[1]) <= _LAST


def _micros(found: Expression, kind: t.IcebergType | None) -> Expression:
    """The microsecond that contains a time; a cast would round times before 1970 up."""
    make = "make_timestamptz" if kind == t.TIMESTAMPTZ_NS else "make_timestamp"
    return expression(
        f"{make}(CAST((x - ((x % 1000) + 1000) % 1000) // 1000 AS BIGINT))", x=_nanos(found)
    )


def _instant(found: Expression, kind: t.IcebergType | None) -> Expression:
    """``_micros``, but infinities stay infinite."""
    plain = "TIMESTAMPTZ" if kind == t.TIMESTAMPTZ_NS else "TIMESTAMP"
    return expression(
        f"CASE x WHEN {_GREATEST} THEN CAST('infinity' AS {plain}) "
        f"WHEN -{_GREATEST} THEN CAST('-infinity' AS {plain}) ELSE y END",
        x=_nanos(found),
        y=_micros(found, kind),
    )


def _nanos(found: Expression) -> Expression:
    """Nanoseconds since 1970 in 128 bits; DuckDB's infinities become the extreme numbers."""
    return expression(
        f"CAST(coalesce(epoch_ns(x), CASE WHEN x > '2000-01-01' THEN {_GREATEST} "
        f"WHEN x IS NOT NULL THEN -{_GREATEST} END) AS HUGEINT)",
        x=found,
    )


def _shifted(found: Expression, fine: Expression, kind: t.IcebergType) -> Expression:
    """A time shifted in microseconds, with its nanoseconds added again."""
    total = expression("CAST(epoch_us(x) AS HUGEINT) * 1000 + y", x=found, y=fine)
    nanos = expression("make_timestamp_ns(CAST(x AS BIGINT))", x=total)
    if kind == t.TIMESTAMPTZ_NS:
        return expression("CAST(CAST(x AS VARCHAR) || '+00' AS TIMESTAMPTZ_NS)", x=nanos)
    return nanos


def _fine(found: Expression, micros: Expression) -> Expression:
    """The nanoseconds of a time beyond its microsecond."""
    return expression("x - CAST(epoch_us(y) AS HUGEINT) * 1000", x=_nanos(found), y=micros)


def _cast_to(found: Expression, kind: str) -> Expression:
    return expression(f"CAST(x AS {kind})", x=found)
