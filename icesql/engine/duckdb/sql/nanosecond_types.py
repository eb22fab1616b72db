"""Expressions over types that DuckDB has but does not mix with others: nanoseconds and UUIDs.

DuckDB compares TIMESTAMPTZ_NS with no TIMESTAMPTZ, has no functions and no arithmetic for it, cuts
nanoseconds towards 1970 instead of down, and takes no UUID for a text. Here such expressions get
the casts that make them exact: times are compared as whole nanoseconds since 1970 in 128 bits, so
that nothing is rounded and instants that TIMESTAMP_NS cannot hold (before 1678, after 2261) work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.column_types import ColumnTypes, cast_type
from icesql.query.names import SelectScope, select_scopes

_NANOS: Final = (t.TIMESTAMP_NS, t.TIMESTAMPTZ_NS)
_TIMES: Final = (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ)
_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
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
# Functions that DuckDB has for nanoseconds without a zone, where they keep them.
_KEEP_LOCAL: Final = frozenset({"strftime"})
_TEXT_FUNCTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        ascii bit_length char_length character_length concat_ws contains ends_with suffix instr
        lcase left len length like_escape lower lpad ltrim md5 prefix regexp_extract
        regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
        repeat replace reverse right rpad rtrim sha256 split split_part starts_with str_split
        string_split strlen strpos position substr substring translate trim ucase unicode upper
        """,
    )
)
_TEXT_OPERATORS: Final = (exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.Glob)
_CALL: Final = r'\s*"?([A-Za-z_]\w*)"?\s*\('
_YEAR: Final = r"\s*(\d{1,6})-\d"
# Years that nanoseconds since 1970 hold whole, in any zone.
_FIRST, _LAST = 1678, 2261
# Greater than any instant: microseconds of 64 bits in nanoseconds.
_BEYOND: Final = 1 << 80
_GREATEST: Final = (1 << 63) - 1


def adapted_types(tree: exp.Expr, schemas: Sequence[Schema]) -> exp.Expr:
    """A rewritten copy; ``tree`` itself where no expression has to change for such types."""
    wanted = (*_NANOS, t.UUID)
    if not any(
        each.type in wanted for schema in schemas for each in t.walk(schema.fields)
    ) and not any(cast_type(each) in wanted for each in tree.find_all(exp.DataType)):
        return tree
    given, tree = tree, tree.copy()
    scopes = select_scopes(tree, schemas)
    types = ColumnTypes(scopes, schemas)
    for scope in scopes:
        written = [_text(each) for each in scope.select.expressions]
        adapter = _Adapter(types, scope)
        for node in reversed(list(scope.own_nodes())):
            adapter.adapt(node)
        for name, each in zip(written, list(scope.select.expressions), strict=True):
            # A column of the result keeps the name that it would have had.
            if not isinstance(each, exp.Alias) and name != _text(each):
                named = exp.Alias(alias=exp.to_identifier(name, quoted=True))
                each.replace(named)
                named.set("this", each)
    # What was not changed is never written back: words of the user would be lost.
    return given if tree == given else tree


def _text(node: exp.Expr) -> str:
    text = str(node.sql(dialect="duckdb", normalize_functions="lower"))
    return f"({text})" if isinstance(node, exp.Binary | exp.Between | exp.In) else text


class _Adapter:
    """Rewrites the expressions of one SELECT, inner ones first."""

    def __init__(self, types: ColumnTypes, scope: SelectScope) -> None:
        self._types, self._scope = types, scope

    def adapt(self, node: exp.Expr) -> None:
        match node:
            case exp.Between():
                self._compare(node, [node.this, node.args["low"], node.args["high"]])
            case exp.In() if node.args.get("query") is not None:
                self._among_rows(node)
            case exp.In() if node.expressions:
                self._compare(node, [node.this, *node.expressions])
            case exp.Add() | exp.Sub():
                self._shift(node)
            case exp.Cast():
                self._cast(node)
            case _ if isinstance(node, _COMPARISONS):
                self._compare(node, [node.this, node.expression])
            case _ if isinstance(node, _TEXT_OPERATORS):
                self._as_text(node)
            case exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Case() | exp.If():
                self._unite(node)
            case exp.Func():
                self._call(node)

    def _of(self, node: exp.Expr) -> t.IcebergType | None:
        return self._types.of(node, self._scope)

    # ------------------------------------------------------------------ comparisons

    def _compare(self, node: exp.Expr, operands: Sequence[exp.Expr]) -> None:
        types = [self._of(each) for each in operands]
        if not any(each in _NANOS for each in types):
            return
        zoned = t.TIMESTAMPTZ_NS in types or t.TIMESTAMPTZ in types
        pairs = list(zip(operands, types, strict=True))
        if all(_meets(each, found, types) for each, found in pairs):
            for each, found in pairs:
                if found == t.TIMESTAMPTZ:
                    _wrap(each, _cast_to, "TIMESTAMPTZ_NS")
            return
        for each, found in pairs:
            _wrap(each, _key, found, zoned)

    def _among_rows(self, node: exp.In) -> None:
        """``x IN (SELECT y …)`` over times of two types, as keys on both sides."""
        query = node.args["query"]
        mine, theirs = self._of(node.this), self._of(query)
        if mine == theirs or not ({mine, theirs} & set(_NANOS)):
            return
        zoned = bool({mine, theirs} & {t.TIMESTAMPTZ_NS, t.TIMESTAMPTZ})
        _wrap(node.this, _key, mine, zoned)
        alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier("c")])
        inside = exp.Subquery(this=query.this.copy(), alias=alias)
        keys = exp.select(_key(exp.column("c", "q"), theirs, zoned)).from_(inside)
        node.set("query", exp.Subquery(this=keys))

    # ------------------------------------------------------------ arithmetic, functions, casts

    def _shift(self, node: exp.Add | exp.Sub) -> None:
        left, right = self._of(node.this), self._of(node.expression)
        if left in (*_NANOS, *_TIMES) and right in (*_NANOS, *_TIMES):
            for each, kind in ((node.this, left), (node.expression, right)):
                if kind in _NANOS:
                    _wrap(each, _micros, kind)
            return
        moment, found = (node.this, left) if left in _NANOS else (node.expression, right)
        if found not in _NANOS:
            return
        # Months and days are steps on the calendar; what is finer than µs stays as it is.
        fine = _fine(moment, _micros(moment, found))
        _wrap(moment, _micros, found)
        total = _sql("CAST(epoch_us(x) AS HUGEINT) * 1000 + y", x=node, y=fine)
        nanos = _sql("make_timestamp_ns(CAST(x AS BIGINT))", x=total)
        if found == t.TIMESTAMPTZ_NS:
            nanos = _sql("CAST(CAST(x AS VARCHAR) || '+00' AS TIMESTAMPTZ_NS)", x=nanos)
        node.replace(nanos)

    def _cast(self, node: exp.Cast) -> None:
        found = self._of(node.this)
        is_time = node.to.this == exp.DataType.Type.TIME
        if found in _NANOS and (is_time or cast_type(node.to) in _TIMES):
            _wrap(node.this, _instant, found)
            if is_time:
                _wrap(node.this, _cast_to, "TIMESTAMP")

    def _unite(self, node: exp.Expr) -> None:
        """Instants of two precisions in one CASE, COALESCE, … have the finer one."""
        branches = [*node.expressions, *(node.args.get("ifs") or ())]
        values = [each.args.get("true", each) for each in branches]
        values += [each for each in (node.this, node.args.get("default")) if each is not None]
        values += [each for each in (node.args.get("true"), node.args.get("false")) if each]
        types = [(each, self._of(each)) for each in values]
        if any(found == t.TIMESTAMPTZ_NS for _, found in types):
            for each, found in types:
                if found == t.TIMESTAMPTZ:
                    _wrap(each, _cast_to, "TIMESTAMPTZ_NS")

    def _call(self, node: exp.Func) -> None:
        call = re.match(_CALL, node.sql(dialect="duckdb"))
        name = call[1].lower() if call else ""
        if name in _TEXT_FUNCTIONS:
            self._as_text(node)
        if name not in _TIME_FUNCTIONS:
            return
        for each in list(node.iter_expressions()):
            found = self._of(each)
            if found == t.TIMESTAMPTZ_NS or (found == t.TIMESTAMP_NS and name not in _KEEP_LOCAL):
                _wrap(each, _instant, found)

    def _as_text(self, node: exp.Expr) -> None:
        for each in list(node.iter_expressions()):
            if self._of(each) == t.UUID:
                _wrap(each, _cast_to, "VARCHAR")


def _meets(
    node: exp.Expr, found: t.IcebergType | None, types: Sequence[t.IcebergType | None]
) -> bool:
    """Whether DuckDB's own comparison is exact for this operand of one with nanoseconds."""
    if found in _NANOS:
        return len({each for each in types if each in _NANOS}) == 1
    if isinstance(node, exp.Null) or found == t.STRING:
        return True
    literal = node.this if isinstance(node, exp.Cast) and found in _TIMES else node
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return False
    if found == t.TIMESTAMPTZ and t.TIMESTAMP_NS in types:
        return False
    year = re.match(_YEAR, literal.name)
    if year is None:
        return found is None  # DuckDB rejects text that is not a time
    return _FIRST <= int(year[1]) <= _LAST


def _key(node: exp.Expr, found: t.IcebergType | None, zoned: bool) -> exp.Expr:
    """Nanoseconds since 1970 in 128 bits; on the session's clock where ``zoned`` is False."""
    if found == t.TIMESTAMPTZ_NS or (found == t.TIMESTAMP_NS and not zoned):
        return _nanos(node)
    if found == t.TIMESTAMP_NS:
        micros = _micros(node, found)
        instant = _sql("CAST(x AS TIMESTAMPTZ)", x=micros)
        fine = _fine(node, micros)
        return _sql("CAST(epoch_us(i) AS HUGEINT) * 1000 + x", i=instant, x=fine)
    if isinstance(node, exp.Literal) and node.is_string and _year_fits(node.name):
        exact = "TIMESTAMPTZ_NS" if zoned else "TIMESTAMP_NS"
        return _sql(f"CAST(epoch_ns(CAST(x AS {exact})) AS HUGEINT)", x=node)
    moment = _sql(f"CAST(x AS {'TIMESTAMPTZ' if zoned else 'TIMESTAMP'})", x=node)
    return _sql(
        f"CASE WHEN isfinite(x) THEN CAST(epoch_us(x) AS HUGEINT) * 1000 "
        f"WHEN x > TIMESTAMP '2000-01-01' THEN {_BEYOND} WHEN isinf(x) THEN -{_BEYOND} END",
        x=moment,
    )


def _year_fits(text: str) -> bool:
    year = re.match(_YEAR, text)
    return year is not None and _FIRST <= int(year[1]) <= _LAST


def _micros(node: exp.Expr, found: t.IcebergType | None) -> exp.Expr:
    """The microsecond that a time lies in; a cast would cut times before 1970 up."""
    make = "make_timestamptz" if found == t.TIMESTAMPTZ_NS else "make_timestamp"
    return _sql(f"{make}(CAST((x - ((x % 1000) + 1000) % 1000) // 1000 AS BIGINT))", x=_nanos(node))


def _instant(node: exp.Expr, found: t.IcebergType | None) -> exp.Expr:
    """As ``_micros``; infinities stay what they are."""
    kind = "TIMESTAMPTZ" if found == t.TIMESTAMPTZ_NS else "TIMESTAMP"
    return _sql(
        f"CASE x WHEN {_GREATEST} THEN CAST('infinity' AS {kind}) "
        f"WHEN -{_GREATEST} THEN CAST('-infinity' AS {kind}) ELSE y END",
        x=_nanos(node),
        y=_micros(node, found),
    )


def _nanos(node: exp.Expr) -> exp.Expr:
    """Nanoseconds since 1970 in 128 bits; what DuckDB takes for infinity are values like others."""
    return _sql(
        f"CAST(coalesce(epoch_ns(x), CASE WHEN x > '2000-01-01' THEN {_GREATEST} "
        f"WHEN x IS NOT NULL THEN -{_GREATEST} END) AS HUGEINT)",
        x=node,
    )


def _fine(node: exp.Expr, micros: exp.Expr) -> exp.Expr:
    """The nanoseconds of a time beyond its microsecond."""
    return _sql("x - CAST(epoch_us(y) AS HUGEINT) * 1000", x=_nanos(node), y=micros)


def _cast_to(node: exp.Expr, kind: str) -> exp.Expr:
    return _sql(f"CAST(x AS {kind})", x=node)


def _wrap(node: exp.Expr, make: Callable[..., exp.Expr], *arguments: Any) -> None:
    """Put in the place of ``node`` what ``make`` makes of it."""
    place = exp.Placeholder()
    node.replace(place)
    place.replace(make(node, *arguments))


def _sql(text: str, **parts: exp.Expr) -> exp.Expr:
    """The expression that ``text`` spells, with its names replaced by copies of ``parts``."""
    made = _parsed(text).copy()
    for column in list(made.find_all(exp.Column)):
        column.replace(exp.Paren(this=parts[column.name].copy()))
    return exp.Paren(this=made)


@lru_cache(maxsize=64)
def _parsed(text: str) -> exp.Expr:
    from sqlglot import parse_one

    return parse_one(text, dialect="duckdb")
