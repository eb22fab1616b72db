"""The user's text runs unchanged, compared with DuckDB over the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import (
    ProgrammingError,
    UnsupportedSqlError,
)
from tests.tables import read_cases, read_lines
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("i long, x long, g string, ts timestamp, s struct<a long, b string>")
ROWS: list[dict[str, Any]] = [
    {"i": 1, "x": 10, "g": "cab", "ts": datetime(2026, 1, 1, 10), "s": {"a": 1, "b": "p"}},
    {"i": 2, "x": None, "g": "bus", "ts": datetime(2026, 1, 31, 23), "s": {"a": 2, "b": "q"}},
    {"i": 3, "x": 30, "g": None, "ts": datetime(2026, 2, 1), "s": None},
    {"i": 4, "x": None, "g": "cab", "ts": None, "s": {"a": None, "b": "r"}},
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    folder: Path = tmp_path_factory.mktemp("words")
    for namespace, rows in (("demo", ROWS), ("other", ROWS[:2])):
        table = TableWriter(folder / namespace / "t", FIELDS)
        table.commit([table.data_file(rows)])
    with icesql.connect(warehouse=str(folder)) as opened:
        opened.execute("USE demo")
        yield opened


@pytest.fixture(scope="module")
def referee() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        for namespace, rows in (("demo", ROWS), ("other", ROWS[:2])):
            opened.execute(f"CREATE SCHEMA {namespace}")
            opened.execute(
                f"CREATE TABLE {namespace}.t"
                "(i BIGINT, x BIGINT, g VARCHAR, ts TIMESTAMP, s STRUCT(a BIGINT, b VARCHAR))"
            )
            opened.executemany(
                f"INSERT INTO {namespace}.t VALUES (?, ?, ?, ?, ?)",
                [list(row.values()) for row in rows],
            )
        opened.execute("USE demo")
        yield opened


@pytest.mark.parametrize("sql", read_lines(__file__, "own_words.tsv"))
def test_the_answer_and_its_names_are_duckdb_s(
    connection: icesql.Connection, referee: Any, sql: str
) -> None:
    expected = referee.sql(sql)
    cursor = connection.execute(sql)
    assert [each[0] for each in cursor.description or ()] == expected.columns
    assert sorted(map(repr, cursor.fetchall())) == sorted(map(repr, expected.fetchall()))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT last(x IGNORE NULLS) FROM t",
        "SELECT to_char(ts, 'YYYY') FROM t",
        "SELECT list_has_any([1], [2], [3])",
        "SELECT mode(0.25) WITHIN GROUP (ORDER BY x) FROM t",
        "SELECT space(3)",
    ],
)
def test_what_duckdb_refuses_is_refused(
    connection: icesql.Connection, referee: Any, sql: str
) -> None:
    with pytest.raises(duckdb.Error):
        referee.sql(sql).fetchall()
    with pytest.raises((ProgrammingError, UnsupportedSqlError)):
        connection.execute(sql).fetchall()


def test_parameters_and_clocks_keep_their_names(connection: icesql.Connection) -> None:
    sql = "SELECT ?, ? + 1, upper(?), now(), CURRENT_DATE, now() - INTERVAL 1 DAY, i FROM t LIMIT 1"
    cursor = connection.execute(sql, [1, 2, "a"])
    assert [each[0] for each in cursor.description or ()] == [
        "$1", "($2 + 1)", "upper($3)", "now()", "CURRENT_DATE",
        "(now() - to_days(CAST(trunc(CAST(1 AS DOUBLE)) AS INTEGER)))", "i",
    ]  # fmt: skip
    (row,) = cursor.fetchall()
    assert row[:3] == (1, 3, "A")
    assert row[3].tzinfo == UTC


@pytest.mark.parametrize(("sql", "values", "expected"), read_cases(__file__, "parameters.tsv", 1))
def test_parameters_are_values(
    connection: icesql.Connection, sql: str, values: Any, expected: str
) -> None:
    assert repr(connection.execute(sql, values).fetchall()) == f"[({expected},)]"


def test_time_travel_is_cut_out(connection: icesql.Connection) -> None:
    snapshots = connection.execute("SHOW SNAPSHOTS t").fetchall()
    version = next(each for each in snapshots[0] if isinstance(each, int))
    sql = f"SELECT count(t.i), upper(t.g) FROM t FOR VERSION AS OF {version} WHERE i = ? GROUP BY 2"
    assert connection.execute(sql, [1]).fetchall() == [(1, "CAB")]


def test_names_by_namespace_work_where_duckdb_s_do_not(connection: icesql.Connection) -> None:
    assert connection.execute("SELECT demo.t.g.upper() FROM demo.t WHERE i = 1").fetchall() == [
        ("CAB",)
    ]
    cursor = connection.execute("SELECT demo.t.* EXCLUDE (s) FROM demo.t WHERE i = 1")
    assert [each[0] for each in cursor.description or ()] == ["i", "x", "g", "ts"]


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        ("SELECT i,\n  'é', sum(g) FROM demo.t WHERE i < ?", [3], "sum(g)"),
        ("SELECT demo.t.i, now() + 'x'::INTEGER[] FROM demo.t", [], "+ 'x'"),
        ("SELECT (SELECT max(i) FROM t), upper(i, ?) FROM t", [1], "upper(i, ?)"),
    ],
)
def test_an_error_of_duckdb_s_is_placed_in_the_user_s_text(
    connection: icesql.Connection, sql: str, values: list[Any], words: str
) -> None:
    with pytest.raises(icesql.Error) as caught:
        connection.execute(sql, values).fetchall()
    before = sql[: sql.index(words)]
    assert caught.value.line == before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    assert f"column {column}" in str(caught.value)


def test_a_column_of_a_type_that_duckdb_mixes_with_no_other_leaves_the_words_alone(
    tmp_path: Path,
) -> None:
    table = TableWriter(tmp_path, fields("u uuid, ns timestamp_ns, i long, x long"), version=3)
    rows = [{"u": bytes(16), "ns": None, "i": i, "x": x} for i, x in enumerate([10, None, 30])]
    table.commit([table.data_file(rows)])
    with icesql.connect() as opened:
        opened.register_table("t", str(table.metadata_path))
        cursor = opened.execute(
            "SELECT last(x IGNORE NULLS) OVER (ORDER BY i), 1e3+1e3, ns FROM t WHERE u IS NOT NULL "
            "ORDER BY i"
        )
        assert cursor.fetchall() == [(10, 2000.0, None), (10, 2000.0, None), (30, 2000.0, None)]


def test_a_text_that_runs_again_may_stand_elsewhere(connection: icesql.Connection) -> None:
    text = "SELECT i + ? FROM demo.t ORDER BY i LIMIT 1"
    first = connection.execute(text, [1])
    name, rows = first.description[0][0], first.fetchall()
    for before in ("", "   ", "/* é */\n", "-- x\n"):
        again = connection.execute(before + text, [1])
        assert (again.description[0][0], again.fetchall()) == (name, rows)
    scripts = (
        "SELECT current_date - current_date AS d; SELECT now() = now(), 1; SELECT now() = now(), 1"
    )
    results = [each.fetchall() for each in connection.execute_script(scripts)]
    assert results[1] == results[2] == [(True, 1)]
