"""Plain files read by the column names in the files have the table's columns in the result."""

from __future__ import annotations

import json

import pytest

import icesql
from icesql.engine.duckdb.relations import grouping
from tests.writer.fields import fields
from tests.writer.table import TableWriter


def evolved(tmp_path):
    """Three footers: columns renamed, swapped, dropped, added again and widened on the way."""
    table = TableWriter(tmp_path, fields("a int, b string"))
    table.commit([table.data_file([{"a": 1, "b": "x"}])])
    table.set_fields(fields("b int, a string")[::-1])
    table.commit([table.data_file([{"a": "y", "b": 2}])])
    table.set_fields(fields("a string, b int, C double", 2))
    table.commit([table.data_file([{"a": "z", "b": 3, "C": 0.5}])])
    return table


@pytest.mark.parametrize("most_footers", [0, 4])
def test_names_and_field_ids_read_the_same_rows(tmp_path, monkeypatch, most_footers):
    # With no footer read by name, field ids are used.
    monkeypatch.setattr(grouping, "_MOST_FOOTERS", most_footers)
    table = evolved(tmp_path)
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute('SELECT a, b, "C", _pos FROM t ORDER BY a')
        assert set(cursor.scan_groups) == {"duckdb"}
        assert cursor.fetchall() == [("x", None, None, 0), ("y", None, None, 0), ("z", 3, 0.5, 0)]
        assert con.execute("SELECT count(*) FROM t WHERE b IS NULL").fetchall() == [(2,)]
        assert con.execute("SELECT a FROM t WHERE c > 0.1").fetchall() == [("z",)]


def estimate(con, sql):
    """The engine's estimate of the rows of the only table in a query."""
    cursor = con.execute(sql)
    result = cursor._result
    found = result._open.cursor.execute(
        "EXPLAIN (FORMAT json) " + result._sql, result._sources.parameters
    ).fetchall()
    assert set(cursor.scan_groups) == {"duckdb"}
    cursor.close()
    node = json.loads(found[0][1])[0]
    while node["children"]:
        (node,) = node["children"]
    return int(node["extra_info"]["Estimated Cardinality"])


@pytest.mark.parametrize("most_footers", [0, 4])
@pytest.mark.parametrize("counts", [(5000,), (7, 5000, 20), (5000, 7)])
def test_the_engine_learns_how_many_rows_there_are(tmp_path, monkeypatch, most_footers, counts):
    monkeypatch.setattr(grouping, "_MOST_FOOTERS", most_footers)
    table = TableWriter(tmp_path, fields("a long"))
    table.commit([table.data_file([{"a": i} for i in range(count)]) for count in counts])
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        for _ in range(3):
            assert estimate(con, "SELECT a FROM t") == sum(counts)
        expected = [(sum(counts), sum(count * (count - 1) // 2 for count in counts))]
        for _ in range(20):
            assert con.execute("SELECT count(a), sum(a) FROM t").fetchall() == expected


def test_a_widened_column_is_read_by_field_id(tmp_path):
    table = TableWriter(tmp_path, fields("a int"))
    table.commit([table.data_file([{"a": 1}])])
    table.set_fields(fields("a long"))
    table.commit([table.data_file([{"a": 2**40}])])
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute("SELECT a FROM t ORDER BY a")
        assert set(cursor.scan_groups) == {"duckdb"}
        assert cursor.fetchall() == [(1,), (2**40,)]
