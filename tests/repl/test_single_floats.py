"""FLOAT values are shown as the engine's own text of them."""

from __future__ import annotations

import struct

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icesql
from icesql.dbapi.cursor import result_types
from icesql.engine.result_schema import ResultType
from icesql.repl.cells import json_of, text_of
from icesql.repl.single_floats import as_written

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


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0.1::FLOAT", "0.1"),
        ("3.4028235e38::FLOAT", "3.4028235e+38"),
        ("1e-45::FLOAT", "1e-45"),
        ("'-0.0'::FLOAT", "-0.0"),
        ("16777216::FLOAT", "16777216.0"),
        ("'nan'::FLOAT", "nan"),
        ("'-inf'::FLOAT", "-inf"),
        ("NULL::FLOAT", "NULL"),
        ("0.1::DOUBLE", "0.1"),
        ("0.1::FLOAT::DOUBLE", "0.10000000149011612"),
        ("[0.1::FLOAT, NULL]", "[0.1, null]"),
        ("{'a': 0.1::FLOAT, 'b': 0.1::FLOAT::DOUBLE}", '{"a": 0.1, "b": 0.10000000149011612}'),
        ("(0.1::FLOAT, [(1, 0.3::FLOAT)])", "[0.1, [[1, 0.3]]]"),
        ("MAP {0.1::FLOAT: [0.7::FLOAT]}", "[[0.1, [0.7]]]"),
        ("NULL::FLOAT[]", "NULL"),
        ("0.1::FLOAT::UNION(f FLOAT, t VARCHAR)", "0.1"),
    ],
)
def test_values_of_queries(expression, text):
    with icesql.connect() as con:
        cursor = con.execute(f"SELECT {expression}, 1")
        ((value, one),) = as_written(cursor, result_types(cursor))
    assert (text_of(value), one) == (text, 1)
    if (
        value is not None
        and value == value
        and abs(value if isinstance(value, float) else 0) < 1e39
    ):
        assert json_of(value) == text


def test_rows_without_floats_stay_as_they_are():
    rows = [(1, "a")]
    assert as_written(rows, [ResultType("bigint"), ResultType("varchar")]) is rows
