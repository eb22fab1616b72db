"""The text that a user wrote runs, word for word: DuckDB over the same rows is the referee."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import (
    AmbiguousTableError,
    ColumnNotFoundError,
    ProgrammingError,
    SqlSyntaxError,
    UnsupportedSqlError,
)
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "i", "required": False, "type": "long"},
    {"id": 2, "name": "x", "required": False, "type": "long"},
    {"id": 3, "name": "g", "required": False, "type": "string"},
    {"id": 4, "name": "ts", "required": False, "type": "timestamp"},
    {"id": 5, "name": "s", "required": False, "type": {"type": "struct", "fields": [
        {"id": 6, "name": "a", "required": False, "type": "long"},
        {"id": 7, "name": "b", "required": False, "type": "string"},
    ]}},
]  # fmt: skip
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


WORDS = [
    # Tables of one name, and all rows so far of a recursive query.
    "SELECT * FROM t, other.t ORDER BY ALL",
    "SELECT demo.t.i, other.t.i, g.x FROM demo.t, other.t, t AS g WHERE demo.t.i < other.t.i AND other.t.g = 'bus' ORDER BY ALL",
    "SELECT other.t.i, other.t.s.a FROM demo.t RIGHT JOIN other.t ON demo.t.i = other.t.i + 3 WHERE other.t.i IN (SELECT t.i FROM t) ORDER BY ALL",
    "WITH RECURSIVE r(i, p) AS (SELECT 1, 10 UNION ALL SELECT n.i + 1, a.p + 10 FROM r n JOIN recurring.r a ON a.i = n.i WHERE n.i < 3) SELECT p FROM r ORDER BY i",
    "SELECT date_trunc(g, ts), datetrunc(t.g, ts) FROM (SELECT 'month' AS g, ts FROM t) t ORDER BY ALL",
    "SELECT try(date_trunc(g, ts)), try(date_diff(g, ts, ts)) FROM t ORDER BY ALL",
    "WITH RECURSIVE r(k, v) USING KEY (k, min(v)) AS (VALUES (1, 5) UNION SELECT k, v + d FROM r, (VALUES (0), (1)) o(d)) FROM r",
    "WITH RECURSIVE r(k, v, w) USING KEY (k, max(v), w) AS (SELECT i, x, i FROM t UNION SELECT k, v + 1, w FROM r WHERE v < 12) SELECT * FROM r ORDER BY ALL",
    "WITH RECURSIVE r AS (SELECT i, x FROM t WHERE i = 1 UNION SELECT t.i, t.x FROM t, recurring.r AS a WHERE t.i = a.i + 1) SELECT * FROM r ORDER BY i",
    # What sqlglot's tree has no place for.
    "SELECT i, last(x IGNORE NULLS) OVER (ORDER BY i) FROM t ORDER BY i",
    "SELECT i, first(x IGNORE NULLS) OVER (ORDER BY i DESC) FROM t ORDER BY i",
    "SELECT ts + INTERVAL '1 mon', ts - INTERVAL '3 min', ts + INTERVAL '1 hr' FROM t ORDER BY i",
    "SELECT count(*) FROM t WHERE ts > TIMESTAMP '2026-02-01 00:30:00' - INTERVAL '30 min'",
    "SELECT jaro_winkler_similarity('CRATE', 'TRACE', 0.8)",
    "SELECT date_trunc(u, d) FROM (VALUES ('year', DATE '1992-12-02'), ('month', DATE '1992-12-02')) v(u, d)",
    "SELECT date_diff(u, ts, TIMESTAMP '2027-01-01') FROM t, (VALUES ('day'), ('year')) v(u) ORDER BY i, u",
    "SELECT DATE '2026-01-01'::TIMESTAMP, DATE '2026-01-01'::VARCHAR, TIMESTAMP '2026-01-01 10:00:00'::DATE",
    "SELECT TIMESTAMP '2026-01-01 10:00:00'::TIME",
    "SELECT regexp_extract('aBC', 'b(c)', 1, 'i'), regexp_replace('aXbX', 'x', '-', 'gi')",
    "SELECT '15:30:00.123456789'::TIME_NS::VARCHAR",
    # Names of columns.
    "SELECT CAST(x AS TEXT), x::int, count(*) OVER (), -x, x IS NULL, NOT (x = 1), [x], {'a': x} FROM t",
    "SELECT UPPER(g), t.x + 1, (SELECT max(x) FROM t), (SELECT min(q.x) FROM demo.t AS q) + 1 FROM t",
    "SELECT extract(dow FROM ts), string_agg(g, ';'), date_part('DAYOFWEEK', ts) FROM t GROUP BY ts",
    "SELECT * FROM (SELECT (SELECT max(x) FROM t), upper(t.g), upper(demo.t.g) FROM demo.t)",
    # Function chaining, stars of structs, names by catalog and namespace.
    "SELECT g.upper(), t.g.upper(), t.g.upper().lower(), s.b.upper() FROM demo.t",
    "SELECT count(*) FROM t WHERE g.starts_with('c') AND t.g.length() = 3",
    "SELECT s.* FROM t",
    "SELECT t.*, demo.t.i FROM demo.t",
    "SELECT t.i, q.i FROM demo.t, other.t q WHERE demo.t.i = q.i",
    "SELECT t.s.a, demo.t.s.b, s.a + 1 FROM demo.t ORDER BY demo.t.s.a",
    "SELECT t FROM t",
    # Words that two lexers may split in two ways.
    "SELECT E'it\\'s', $$a'b$$, $tag$c$$d$tag$, 'x''y', \"i\" /* a /* b */ c */ FROM t -- '",
    "SELECT 'é', i AS \"ü\" FROM t WHERE g <> '🦆'",
    "FROM t",
    "FROM t SELECT i, x WHERE i > 1",
    "VALUES (1, 'a'), (2, 'b')",
    "WITH q AS (SELECT i FROM t), r AS (FROM q) SELECT * FROM r UNION ALL SELECT 9",
    "SELECT i FROM t WHERE x IN (10, 30) OR g IN ('bus')",
]  # fmt: skip


@pytest.mark.parametrize("sql", WORDS)
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


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ("SELECT 2 -?", [-3], 5),
        ("SELECT 2 -:a", {"a": -3}, 5),
        ("SELECT CASE WHEN ?THEN 1 END", [True], 1),
        ("SELECT DATE '2026-01-01' + INTERVAL ? DAY", [3], datetime(2026, 1, 4)),
        ("SELECT count(*) FROM t WHERE i IN ?", [[1, 2, 9]], 2),
        ("SELECT count(*) FROM t WHERE i IN (?, ?)", [1, 2], 2),
        ("FROM t SELECT $b WHERE i = $a", {"a": 1, "b": "x"}, "x"),
        ("FROM (SELECT ? AS a) SELECT a || ?", ["x", "y"], "xy"),
        ("SELECT [1, 2, 3][?]", [2], 2),
        ("SELECT ?", ["it's -- $$ /* \" ?"], "it's -- $$ /* \" ?"),
    ],
)
def test_parameters_are_values(
    connection: icesql.Connection, sql: str, values: Any, expected: object
) -> None:
    assert connection.execute(sql, values).fetchall() == [(expected,)]


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


def test_metadata_columns_are_in_no_star(connection: icesql.Connection) -> None:
    names = ["i", "x", "g", "ts", "s"]
    for sql, expected in (
        ("SELECT *, _pos FROM t", [*names, "_pos"]),
        ("SELECT * EXCLUDE (x, g), _pos FROM t", ["i", "ts", "s", "_pos"]),
        ("SELECT * EXCLUDE x, t._pos FROM t", ["i", "g", "ts", "s", "_pos"]),
        ("SELECT * REPLACE (1 AS i), _pos FROM t", [*names, "_pos"]),
        ("SELECT t.*, _pos FROM demo.t", [*names, "_pos"]),
        ("SELECT _pos FROM (SELECT *, _pos FROM t)", ["_pos"]),
    ):
        description = connection.execute(sql).description or ()
        assert [each[0] for each in description] == expected


def test_an_error_is_placed_in_the_user_s_text(connection: icesql.Connection) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        connection.execute("SELECT i,\n  x AS FROM t")
    assert caught.value.line == 2
    with pytest.raises(ColumnNotFoundError):
        connection.execute("SELECT zz.upper() FROM t")
    with pytest.raises(UnsupportedSqlError) as refused:
        connection.execute("SELECT i FROM t WHERE current_setting('x') = ''")
    assert refused.value.offset == 22
    for sql in (
        "SELECT 1 FROM t, t",
        "SELECT 1 FROM demo.t, other.t WHERE t.i = 1",
        "SELECT (SELECT t.i) FROM demo.t, other.t",
        "SELECT 1 FROM t, other.t AS t",
    ):
        with pytest.raises(AmbiguousTableError):
            connection.execute(sql)
    for sql in ("SELECT rowid FROM t", "SELECT t.rowid FROM t"):
        with pytest.raises(ColumnNotFoundError, match="_pos"):
            connection.execute(sql)


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
    fields = [
        {"id": 1, "name": "u", "required": False, "type": "uuid"},
        {"id": 2, "name": "ns", "required": False, "type": "timestamp_ns"},
        {"id": 3, "name": "i", "required": False, "type": "long"},
        {"id": 4, "name": "x", "required": False, "type": "long"},
    ]
    table = TableWriter(tmp_path, fields, version=3)
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
