"""A translated predicate is true for every row for which DuckDB finds the condition true.

And the complement for all rows for which the condition is false or NULL.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import evaluate
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.iceberg.types import NestedField
from icesql.query.pushdown.computed.expression import expression_of
from icesql.query.pushdown.extremes import complement
from tests.query.pushdown.translation import translate
from tests.tables import read_table
from tests.writer.fields import fields

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
DAY = 86_400_000_000
HOUR = 3_600_000_000


def _micros(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


_ROWS = read_table(__file__, "predicate_texts.tsv")


def _texts(kind: str) -> tuple[str, ...]:
    return tuple(text for each, text in _ROWS if each == kind)


# Values in the internal form.
_MOMENTS = [_micros(text) for text in _texts("moment")]
_VALUES: dict[str, list[Any]] = {
    "i": [None, 0, 1, -1, 5, 6, 2**31 - 1, -(2**31), 16_777_217],
    "l": [None, 0, 5, -7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**24 + 1],
    "f": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 0.10000000149011612, 16777216.0],
    "d": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 0.1, 2.0**53, -3.25],
    "c": [None, *map(Decimal, ("0.00", "1.00", "1.01", "-1.01", "99999999.99", "0.10", "0.11"))],
    "s": [None, "", "a", "ab", "abc", "abd", "a%c", "a_c", "b", "é", "A", "2020-01-01", "5"],
    "b": [None, True, False],
    "e": [None, *sorted({moment // DAY for moment in _MOMENTS})],
    "t": [None, *_MOMENTS],
    "z": [None, *_MOMENTS],
    # Its name can also be a unit.
    "m": ["year"],
}
COLUMNS = (
    "i int, l long, f float, d double, c decimal(10, 2), s string, b boolean, e date, t timestamp, "
    "z timestamptz, m string"
)
FIELDS = {
    each.name: each for each in parse_schema({"type": "struct", "fields": fields(COLUMNS)}).fields
}


@cache
def rows() -> list[dict[int, Any]]:
    chance = random.Random(7)
    return [
        {FIELDS[name].field_id: chance.choice(values) for name, values in _VALUES.items()}
        for _ in range(250)
    ]


@cache
def database(zone: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE r (n INTEGER, i INTEGER, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(10, 2), "
        "s VARCHAR, b BOOLEAN, e DATE, t TIMESTAMP, z TIMESTAMPTZ, m VARCHAR)"
    )
    places = ", ".join(
        {
            "e": "DATE '1970-01-01' + CAST(? AS INTEGER)",
            "t": "make_timestamp(CAST(? AS BIGINT))",
            "z": "make_timestamp(CAST(? AS BIGINT))::TIMESTAMPTZ",
        }.get(name, "?")
        for name in FIELDS
    )
    for number, row in enumerate(rows()):
        connection.execute(f"INSERT INTO r VALUES (?, {places})", [number, *row.values()])
    connection.execute(f"SET TimeZone = '{zone}'")
    return connection


_NUMBERS, _TEXTS, _TIMES = map(_texts, ("number", "text", "time"))
_DATES = tuple(
    text for text in _TIMES if text.startswith(("DATE '", "'2020-03-29'", "NULL", "make_date"))
    and "INTERVAL" not in text
)  # fmt: skip
_EXACT = ("0", "1", "5", "-7", "1.5", "6", "2", "10", "NULL")
_COMPARE = ("=", "<>", "<", "<=", ">", ">=")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")


def _comparison(left: st.SearchStrategy[str], rights: tuple[str, ...]) -> st.SearchStrategy[str]:
    right = st.sampled_from(rights)
    return st.one_of(
        st.tuples(left, st.sampled_from(_COMPARE), right).map(" ".join),
        st.tuples(right, st.sampled_from(_COMPARE), left).map(" ".join),
        st.tuples(left, right).map(lambda p: f"{p[0]} IS DISTINCT FROM {p[1]}"),
        st.tuples(left, right).map(lambda p: f"{p[0]} IS NOT DISTINCT FROM {p[1]}"),
        st.tuples(left, right, right).map(lambda p: f"{p[0]} BETWEEN {p[1]} AND {p[2]}"),
        st.tuples(left, st.lists(right, min_size=1, max_size=3)).map(
            lambda p: f"{p[0]} IN ({', '.join(p[1])})"
        ),
    )


def _columns(*names: str) -> st.SearchStrategy[str]:
    return st.sampled_from(names)


def _of(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda values: template.format(*values))


_wholes = _columns("i", "l")
_arithmetic = st.one_of(
    _of("CAST(i AS BIGINT) + {}", st.sampled_from(("1", "-3", "5"))),
    _of("c + {}", st.sampled_from(("1", "0.5", "-3"))),
    _of("c - {}", st.sampled_from(("1", "0.05"))),
    _of("{} - c", st.sampled_from(("1", "0.5"))),
    _of("CAST(i AS BIGINT) * {}", st.sampled_from(("2", "-3"))),
    _of("-({})", st.just("c")),
    _of("CAST({} AS DOUBLE)", _columns("i", "l", "f", "c")),
)
_moments = _columns("t", "z")
_days = st.one_of(_of("CAST({} AS DATE)", _moments), _of("date({})", _moments))
# DuckDB 2.0 finds date_trunc('hour', date_column) unequal to its own midnight: only days.
_truncated = st.one_of(
    _of("date_trunc('{}', {})", st.sampled_from(_UNITS), _moments),
    _of("date_trunc('{}', e)", st.sampled_from(_UNITS[:5])),
)
_shifted = _of(
    "{} {} {}", _columns("t", "z", "e"), st.sampled_from("+-"), st.sampled_from(_texts("step"))
)
_years = st.one_of(
    _of("year({})", _columns("t", "z", "e")),
    _of("extract(year FROM {})", _columns("t", "z", "e")),
    _of("date_part('year', {})", _columns("t", "z", "e")),
)
_prefixes = st.one_of(
    _of("left(s, {})", st.sampled_from("123")), _of("substr(s, 1, {})", st.sampled_from("123"))
)
_patterns = st.sampled_from(_texts("pattern"))
_leaves = st.one_of(
    _comparison(_columns("i", "l", "f", "d", "c"), _NUMBERS),
    _comparison(_arithmetic, _EXACT),
    _comparison(_columns("s"), _TEXTS),
    _comparison(_prefixes, _TEXTS),
    _comparison(_columns("e", "t", "z"), _TIMES),
    _comparison(_days, _DATES),
    _comparison(_truncated, _TIMES),
    _comparison(_shifted, _TIMES),
    _comparison(_years, ("2020", "1970", "1969", "2021", "NULL")),
    _comparison(_of("e {} 5", st.sampled_from("+-")), ("DATE '2020-01-01'", "'2020-03-01'")),
    _comparison(st.just("DATE '2020-06-15' - e"), ("0", "30", "-200")),
    _of("s LIKE {}", _patterns),
    _of("s NOT LIKE {}", _patterns),
    _of("starts_with(s, {})", st.sampled_from(_TEXTS)),
    _of("{} IS NULL", _columns(*_VALUES)),
    _of("{} IS NOT NULL", _columns(*_VALUES)),
    _of("isnan({})", _columns("f", "d")),
    st.sampled_from(_texts("condition")),
)
conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        _of("({}) AND ({})", inner, inner),
        _of("({}) OR ({})", inner, inner),
        _of("NOT ({})", inner),
    ),
    max_leaves=4,
)


@settings(max_examples=350)
@given(st.sampled_from(ZONES), conditions)
def test_predicate_holds_for_every_row_that_duckdb_keeps(zone: str, condition: str) -> None:
    context = QueryContext(settings=Settings(timezone=zone))
    tree = sqlglot.parse_one(condition, read="duckdb")
    assert isinstance(tree, exp.Expression)
    sql = tree.sql(dialect="duckdb")
    try:
        kept = database(zone).execute(f"SELECT n FROM r WHERE {sql}").fetchall()
    except duckdb.Error:
        return  # a comparison of incompatible types

    def resolve(column: exp.Column) -> NestedField | None:
        return FIELDS.get(column.name)

    predicate = translate(tree, resolve, context).predicate
    lost = [rows()[n] for (n,) in kept if not evaluate(predicate, rows()[n].get)]
    assert not lost, f"{sql} in {zone} became {predicate}, which loses {lost[0]}"
    others = set(range(len(rows()))) - {n for (n,) in kept}
    left_out = complement(expression_of(tree), resolve, context)
    lost = [rows()[n] for n in others if not evaluate(left_out, rows()[n].get)]
    assert not lost, f"{sql} in {zone} leaves out {left_out}, which misses {lost[0]}"
