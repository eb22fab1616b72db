"""All rows of a long scan at once through Arrow, with the same values as through the engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from datetime import UTC
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import icesql
from icesql.engine import result_rows
from icesql.engine.arrow_values import rows_of
from icesql.engine.duckdb.engine import LocalResult
from icesql.engine.result_schema import ResultColumn, ResultType

ROWS = 20_000  # several slices of a batch
# NULLs, the limits of Python's types, and values with nanoseconds.
COLUMNS = """
    range AS id, (range % 7)::INTEGER AS i, range / 7.0::DOUBLE AS d, (range / 3)::FLOAT AS f,
    range % 2 = 0 AS b, CASE WHEN range % 3 > 0 THEN 'row ' || range END AS s,
    CASE range WHEN 0 THEN DATE '0001-01-01' WHEN 1 THEN DATE '9999-12-31' WHEN 2 THEN NULL
        ELSE DATE '2000-01-01' + (range % 9000)::INTEGER END AS day,
    CASE range WHEN 0 THEN TIMESTAMP '0001-01-01' WHEN 1 THEN TIMESTAMP '9999-12-31 23:59:59.99999'
        WHEN 2 THEN NULL ELSE TIMESTAMP '2000-01-01' + INTERVAL (range) SECOND END AS moment,
    CASE WHEN range % 5 > 0 THEN TIMESTAMPTZ '2025-03-30 00:00:00+00' + INTERVAL (range) SECOND END AS tz,
    make_timestamp_ns(range * 1000001) AS ns,
    CASE WHEN range % 4 > 0 THEN TIME '00:00:00' + INTERVAL (range % 86000) SECOND END AS time,
    (range / 100)::DECIMAL(12, 2) AS price, -(range / 100)::DECIMAL(30, 3) AS wide,
    md5(range::VARCHAR)::UUID AS u, ('r' || range)::BLOB AS bin,
    CASE WHEN range % 3 > 0 THEN [range, NULL, 3] END AS l,
    CASE WHEN range % 3 > 0 THEN {'a': range, 'b': NULL::INTEGER, 'c': ['x']} END AS st
"""
PLAIN = [
    "id", "i", "d", "f", "b", "s", "day", "moment", "tz", "ns", "time", "price", "wide", "u", "bin",
    "l", "st",
]  # fmt: skip


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    folder: Path = tmp_path_factory.mktemp("long")
    with icesql.connect(warehouse=folder, timezone="Europe/Berlin") as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute(
            'CREATE TABLE s.t WITH ("format-version" = 3) AS '
            f"SELECT {COLUMNS}, MAP {{'k': range, 'l': NULL}} AS m FROM range({ROWS})"
        )
        yield connection


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_rows, "_MANY_ROWS", ROWS)


@pytest.mark.parametrize("column", PLAIN)
def test_each_value_and_its_type_is_the_same_either_way(
    long: icesql.Connection, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT id, {column} FROM s.t"
    batches = LocalResult._read_batches
    read: list[object] = []
    monkeypatch.setattr(
        LocalResult, "_read_batches", lambda self, *most: read.append(most) or batches(self, *most)
    )
    with monkeypatch.context() as few:
        few.setattr(result_rows, "_MANY_ROWS", ROWS + 1)
        by_engine = sorted(long.execute(sql), key=lambda row: row[0])
    assert read == []
    at_once, in_steps = long.execute(sql).fetchall(), list(long.execute(sql))
    assert read == [(None,), (result_rows.MOST_ROWS,)]
    for rows in (at_once, in_steps):
        by_arrow = sorted(rows, key=lambda row: row[0])
        assert len(by_arrow) == ROWS
        assert by_arrow == by_engine
        assert [type(row[1]) for row in by_arrow] == [type(row[1]) for row in by_engine]
        assert [repr(row) for row in by_arrow[::999]] == [repr(row) for row in by_engine[::999]]


@pytest.mark.parametrize(
    ("column", "least", "most"),
    [
        ("range", ROWS, ROWS),
        ("repeat('x', 2000)", 1, result_rows.MOST_ROWS),
        ("[range, range + 1, range + 2]", ROWS, ROWS),
        ("range(250)", 1, result_rows.MOST_ROWS),
    ],
)
def test_narrow_rows_become_long_lists_and_wide_ones_short_lists(
    column: str, least: int, most: int
) -> None:
    table = duckdb.sql(f"SELECT {column} AS a FROM range({ROWS})").to_arrow_table()
    (batch,) = table.combine_chunks().to_batches()
    plain = ResultType("varchar" if pa.types.is_string(table["a"].type) else "bigint")
    is_list = pa.types.is_list(table["a"].type)
    declared = ResultType("list", children=(("element", plain),)) if is_list else plain
    lists = list(rows_of(batch, [ResultColumn("a", declared)], UTC, at_once=True))
    assert sum(map(len, lists)) == ROWS
    assert all(least <= len(each) <= most for each in lists[:-1] or lists)
    assert list(chain.from_iterable(lists)) == list(zip(table["a"].to_pylist(), strict=True))


def test_hours_of_a_zone_that_come_twice_are_told_apart(long: icesql.Connection) -> None:
    sql = "SELECT TIMESTAMPTZ '2025-10-26 00:30:00+00' + INTERVAL (id % 2) HOUR FROM s.t"
    zone = ZoneInfo("Europe/Berlin")
    found = {(row[0], row[0].fold, row[0].tzinfo) for row in long.execute(sql).fetchall()}
    once = dt.datetime(2025, 10, 26, 2, 30, tzinfo=zone)
    assert found == {(once, 0, zone), (once.replace(fold=1), 1, zone)}


def test_maps_come_in_slices_of_a_batch(long: icesql.Connection) -> None:
    rows = long.execute("SELECT id, m FROM s.t").fetchall()
    assert len(rows) == ROWS
    assert all(found == [("k", number), ("l", None)] for number, found in rows)


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN id = 9999 THEN DATE '10000-01-01' ELSE DATE '2000-01-01' END",
        "CASE WHEN id = 9999 THEN TIMESTAMP 'infinity' ELSE TIMESTAMP '2000-01-01' END",
        "CASE WHEN id = 9999 THEN TIMESTAMPTZ '0001-01-01 (BC) 00:00:00' ELSE TIMESTAMPTZ '2000-01-01' END",
        "CASE WHEN id = 9999 THEN TIME '24:00:00' ELSE TIME '00:00:00' END",
    ],
)
def test_what_python_has_no_value_for_is_an_error_either_way(
    long: icesql.Connection, value: str
) -> None:
    for read in (lambda c: c.fetchall(), list):
        with pytest.raises(icesql.DataError, match="CAST it to VARCHAR or read it through arrow"):
            read(long.execute(f"SELECT {value} FROM s.t"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) + 0 FROM s.t",
        "SELECT id FROM s.t ORDER BY id LIMIT 3",
        "SELECT i, max(id) FROM s.t GROUP BY i",
    ],
)
def test_short_results_of_long_scans_do_without_arrow(
    long: icesql.Connection, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalResult, "_read_batches", None)
    assert 1 <= len(long.execute(sql).fetchall()) <= 7


def test_a_short_scan_is_left_to_the_engine(
    long: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_rows, "_MANY_ROWS", ROWS + 1)
    monkeypatch.setattr(LocalResult, "_read_batches", None)
    assert len(long.execute("SELECT id FROM s.t").fetchall()) == ROWS


def test_rows_that_were_begun_are_read_on(long: icesql.Connection) -> None:
    cursor = long.execute("SELECT id FROM s.t")
    first = [*cursor.fetchmany(3), cursor.fetchone()]
    assert sorted([*first, *cursor.fetchall()]) == [(number,) for number in range(ROWS)]
    assert cursor.rowcount == ROWS
