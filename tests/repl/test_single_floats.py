"""FLOAT values are shown as the engine's own text of them."""

from __future__ import annotations

import json
import struct

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

import icesql
from icesql.dbapi.cursor import result_types
from icesql.engine.result_schema import ResultType
from icesql.repl.render import as_written, json_of, text_of
from tests.rows import rows_of

FLOAT = ResultType("float")


def shown(value: float | None) -> float | None:
    ((found,),) = as_written([(value,)], [FLOAT])
    return found


@settings(max_examples=500)
@given(value=st.floats(width=32, allow_nan=False))
def test_the_text_is_short_and_reads_back_as_the_same_float(value):
    text = repr(shown(value))
    if abs(value) != float("inf"):
        assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    assert len(text) <= len(repr(value))


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_the_value_is_that_of_the_engines_text(values):
    with duckdb.connect() as con:
        wanted = con.sql(
            "SELECT list_transform(v, lambda x: x::FLOAT::VARCHAR::DOUBLE) FROM (SELECT $v v)",
            params={"v": values},
        ).fetchall()[0][0]
    assert [shown(value) for value in values] == wanted


@rows_of(__file__, "shown_values.tsv", "expression", "text", "as_json")
def test_values_of_queries(expression, text, as_json):
    with icesql.connect(settings={"timezone": "UTC"}) as con:
        cursor = con.execute(f"SELECT {expression}, 1")
        ((value, one),) = as_written(cursor, result_types(cursor))
    assert (text_of(value), json_of(value), one) == (text, as_json, 1)
    json.loads(as_json)


def test_rows_without_floats_stay_as_they_are():
    rows = [(1, "a")]
    assert as_written(rows, [ResultType("bigint"), ResultType("varchar")]) is rows
