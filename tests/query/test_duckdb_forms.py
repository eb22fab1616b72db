"""Forms of DuckDB's dialect over Iceberg columns: the same rows as in DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pytest

import icesql
from tests.tables import read_table
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields(
    "id long, g string, d date, l list<int>, s struct<a int, b string, n struct<z int>>, x int, pat string, j string"
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "g": "abc", "d": dt.date(2026, 1, 31), "l": [1, 2, 3],
     "s": {"a": 1, "b": "x", "n": {"z": 5}}, "x": 10, "pat": "A%", "j": '{"k": [1]}'},
    {"id": 2, "g": "Cat", "d": dt.date(2025, 12, 1), "l": [],
     "s": {"a": 2, "b": "y", "n": {"z": 6}}, "x": 20, "pat": "c!%", "j": '{"k": "v"}'},
    {"id": 3, "g": None, "d": None, "l": None, "s": None, "x": None, "pat": None, "j": None},
    {"id": 4, "g": "c%", "d": dt.date(2026, 3, 1), "l": [5, None],
     "s": {"a": None, "b": None, "n": None}, "x": 10, "pat": "c!%", "j": "{}"},
]  # fmt: skip

SAME = """
SELECT id, [y + 1 FOR y IN l] FROM t ORDER BY id
SELECT [y + x FOR y IN l IF y > 1] FROM t ORDER BY id
SELECT [y + i FOR y, i IN l] FROM t ORDER BY id
SELECT [[y * z FOR z IN l] FOR y IN l] FROM t ORDER BY id
SELECT [x FOR x IN l IF x > 1] FROM t WHERE x = 10 ORDER BY id
SELECT [g FOR g IN l] FROM t ORDER BY id
SELECT [y FOR y IN [z FOR z IN l]] FROM t ORDER BY id
SELECT [y.upper() FOR y IN ['a', g]] FROM t ORDER BY id
SELECT [r.id FOR r IN [t]] FROM t ORDER BY id
SELECT [id.add(y) FOR y IN l IF y.add(0) > 1 AND id < 3] FROM t ORDER BY id
SELECT id FROM t WHERE len([y FOR y IN l IF y > 2]) > 0 ORDER BY id
SELECT max(COLUMNS([c FOR c IN * IF c LIKE 'i%'])) FROM t
SELECT g.upper() FROM t ORDER BY id
SELECT t.g.upper() FROM t ORDER BY id
SELECT "g".upper(), t."g"."upper"() FROM t ORDER BY id
SELECT g.upper().lower().len() FROM t ORDER BY id
SELECT id FROM t WHERE g.starts_with('c') ORDER BY id
SELECT id FROM t WHERE t.g.starts_with('c') = true AND x IN (l.list_max(), 10) ORDER BY id
SELECT g.replace('a', 'b').upper() FROM t ORDER BY id
SELECT g.upper().replace(g.lower().upper(), 'z'.upper()) FROM t ORDER BY id
SELECT s.b.upper(), (s).b.upper(), s['b'].upper() FROM t ORDER BY id
SELECT l.list_sum(), l[1].add(1), t.l[1].add(1) FROM t ORDER BY id
SELECT ('x').upper(), 'y'.upper(), DATE '2026-01-01'.year() FROM t
SELECT (g || 'z').upper() FROM t ORDER BY id
SELECT CASE x WHEN 10 THEN g ELSE 'q' END.upper() FROM t ORDER BY id
SELECT CASE WHEN g.len() > 2 THEN g.upper() END FROM t ORDER BY id
SELECT x::VARCHAR.upper(), (x::VARCHAR).len(), x::DECIMAL(10, 2).abs() FROM t ORDER BY id
SELECT l::BIGINT[].len(), -x::INT.abs() FROM t ORDER BY id
SELECT l.list_transform(lambda y: y.add(x)) FROM t ORDER BY id
SELECT x.sum(), max(g.len()), count(*) FILTER (g.starts_with('c')) FROM t
SELECT sum(x).add(1), (SELECT max(x) FROM t).add(1) FROM t
SELECT g.upper() AS u FROM t GROUP BY ALL ORDER BY u
SELECT id FROM t ORDER BY g.lower(), id
SELECT a.g.upper() FROM t a JOIN t b ON a.g.lower() = b.g.lower() ORDER BY 1
SELECT NOT g.starts_with('c') AND x.add(1) > 2, x + l.len() * 2 FROM t ORDER BY id
SELECT g.left(1), g.right(1), g.trim(), g.substring(1, 2), g.position('a') FROM t ORDER BY id
SELECT {'f': g}.f.upper(), MAP {'a': x}.map_keys(), [g][1].upper() FROM t ORDER BY id
SELECT 'month'.date_trunc(d), d.strftime('%Y') FROM t ORDER BY id
SELECT main.upper(g), system.main.lower(g) FROM t ORDER BY id
SELECT s.* FROM t ORDER BY id
SELECT S.* FROM t ORDER BY id
SELECT s.* EXCLUDE (b) FROM t ORDER BY id
SELECT id, s.*, x FROM t ORDER BY id
SELECT t.* EXCLUDE (s, l, d, g), s.* FROM t ORDER BY id
SELECT s.* FROM t JOIN (SELECT 5 AS y) s ON true ORDER BY ALL
SELECT id, FROM t ORDER BY id
SELECT 42,
SELECT * EXCLUDE (s, l, d,), FROM t, WHERE id = 1
SELECT sum(x) OVER (PARTITION BY x, ORDER BY id,) FROM t ORDER BY ALL
WITH y AS (SELECT id, FROM t), SELECT * FROM y ORDER BY id, LIMIT 2
SELECT g, count(*), FROM t GROUP BY g, ORDER BY g,
SELECT [1, 2,], (1, 2,), {'a': 1,}, coalesce(g, 'a',) FROM t ORDER BY id
SELECT id FROM t, (SELECT 1 AS one,) WHERE id IN (1, 2,) ORDER BY id,
SELECT date_part(['year', 'month'], d) FROM t ORDER BY id
SELECT id FROM t WHERE g ILIKE pat ESCAPE '!' ORDER BY id
SELECT id FROM t WHERE g LIKE pat ESCAPE '!' ORDER BY id
SELECT id FROM t WHERE g NOT ILIKE 'c!%' ESCAPE '!' ORDER BY id
SELECT id FROM t WHERE ROW(id, x) < ANY (SELECT 2, 20) ORDER BY id
SELECT id FROM t WHERE (id, x) = ANY (SELECT 2, 20) ORDER BY id
SELECT id FROM t WHERE (id, x) <> ALL (SELECT 2, 20) ORDER BY id
SELECT id FROM t WHERE x >= ALL (SELECT x FROM t WHERE x IS NOT NULL) ORDER BY id
SELECT CAST(ROW(1, 2) AS ROW(a INT, b INT)), {'a': 1}::ROW(a INT)
SELECT d + INTERVAL '30 min', d + INTERVAL '1 mon', d - INTERVAL '2 hrs' FROM t ORDER BY id
SELECT * FROM ((VALUES (1), (2)) l(a) FULL JOIN (VALUES (2), (3)) r(b) ON l.a = r.b) ORDER BY ALL
SELECT t.id FROM t SEMI JOIN (t b JOIN t c ON b.id = c.id) ON EXISTS (SELECT 1 FROM t e WHERE e.id = t.id) ORDER BY t.id
SELECT a.id FROM t a SEMI JOIN (t b JOIN t c ON b.id = c.id) ON a.id = b.x - 9 ORDER BY a.id
SELECT a.id FROM t a ANTI JOIN (t b JOIN t c ON b.id = c.id AND c.g.len() > 2) ON a.id = b.id ORDER BY a.id
WITH RECURSIVE r(k, v) USING KEY (k) AS (SELECT id, 0 FROM t WHERE id = 1 UNION SELECT r.k, r.v + 1 FROM r, recurring.r AS q WHERE r.v < 3 AND q.k = r.k) SELECT * FROM r ORDER BY ALL
WITH RECURSIVE r(k, v) USING KEY (k, max(v)) AS (SELECT id, 0 FROM t UNION SELECT k, v + 1 FROM r WHERE v < 3) SELECT * FROM r ORDER BY ALL
WITH RECURSIVE r(k, v, w) USING KEY (k, max(v), sum(w)) AS (SELECT id, 0, 1 FROM t UNION SELECT k, v + 1, 2 FROM r WHERE v < 3) SELECT * FROM r ORDER BY ALL
SELECT x AS c, count(*) FROM t GROUP BY x HAVING alias.c > 5 ORDER BY ALL
SELECT id, row_number() OVER (ORDER BY id) AS r FROM t QUALIFY alias.r = 1
SELECT x + 1 AS y FROM t WHERE alias.y > 5 ORDER BY ALL
SELECT s.n.z, t.s.n.z, s['n']['z'] FROM t ORDER BY id
SELECT (42,), (id,) FROM t ORDER BY id
SELECT (1,) IN ((1,), (2,)), (SELECT count(*) FROM (VALUES (1,), (2,)) v(a))
SELECT id FROM t WHERE (id,) = (1,)
SELECT x, count(*) FROM t GROUP BY GROUPING SETS ((x,), ()) ORDER BY ALL
SELECT DISTINCT ON (x,) x FROM t ORDER BY x
SELECT list_transform(l, lambda y, i: y + i), list_filter(l, lambda x: x > 1) FROM t ORDER BY id
SELECT #1, #2 FROM (SELECT id, x FROM t) ORDER BY #1
SELECT id, x FROM t ORDER BY #2, #1
SELECT #3, #6 FROM t ORDER BY id
SELECT count(*) FROM t GROUP BY #6 ORDER BY 1
SELECT #2 FROM t a JOIN t b USING (id) ORDER BY ALL
SELECT id FROM t WHERE x IN (VALUES (10), (30)) ORDER BY id
SELECT id FROM t WHERE (id, x) IN (VALUES (1, 10), (4, 11)) ORDER BY id
SELECT j -> '$.k', j ->> 'k', len(j -> '$.k'), coalesce(j -> 'k', 'null') FROM t ORDER BY id
SELECT max(j -> '$.k') FROM t
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    table = TableWriter(tmp_path_factory.mktemp("forms"), FIELDS)
    table.commit([table.data_file(ROWS)])
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        yield con


@pytest.fixture(scope="module")
def engine(connection):
    table = connection.execute("SELECT * FROM t").arrow()
    with duckdb.connect() as con:
        con.register("rows", table)
        con.execute("CREATE TABLE t AS SELECT * FROM rows").fetchall()
        yield con


def plain(value: Any) -> Any:
    """Structs as pairs, so that the names and the order of their fields are compared."""
    match value:
        case dict():
            return [(name, plain(each)) for name, each in value.items()]
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value


@pytest.mark.parametrize("sql", SAME.strip().splitlines())
def test_rows_are_the_engines_own(connection, engine, sql):
    wanted = plain(engine.cursor().execute(sql).fetchall())
    assert plain(connection.execute(sql).fetchall()) == wanted


@pytest.mark.parametrize(("sql", "message"), read_table(__file__, "duckdb_refusals.tsv"))
def test_what_cannot_be_understood_is_refused_at_its_place(connection, sql, message):
    with pytest.raises(icesql.Error, match=message):
        connection.execute(sql).fetchall()


def test_variables_and_methods_read_only_their_columns(connection):
    for sql, columns in (
        ("SELECT [x + 1 FOR x IN l] FROM t", ["l"]),
        ("SELECT [y + x FOR y IN l] FROM t", ["l", "x"]),
        ("SELECT t.g.upper() FROM t", ["g"]),
        ("SELECT s.* FROM t", ["s"]),
        ("SELECT g.concat(pat) FROM t", ["g", "pat"]),
        ("SELECT max(j -> '$.k') FROM t", ["j"]),
    ):
        cursor = connection.execute(sql)
        cursor.fetchall()
        assert list(cursor.scan_reports[0].projected_field_names) == columns, sql


@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("g.starts_with('c')", "g STARTS WITH 'c'"),
        ("t.g.starts_with('c')", "g STARTS WITH 'c'"),
        ("d.year() = 2026", "d >= 2026-01-01 AND d < 2027-01-01"),
        ("'month'.date_trunc(d) = DATE '2026-01-01'", "d >= 2026-01-01 AND d < 2026-02-01"),
        ("g.length() = 3", "true"),
        ("[y FOR y IN l] = [id]", "true"),
    ],
)
def test_methods_prune_as_calls_do(connection, condition, pushed):
    rows = connection.execute(f"EXPLAIN SELECT id FROM t WHERE {condition}").fetchall()
    assert f"  filter: {pushed}" in [line for (line,) in rows]


def test_parameters_have_methods(connection):
    for sql, given in (
        ("SELECT ?.upper(), ?.concat(?)", ["a", "b", "c"]),
        ("SELECT :p.upper(), :q.concat(:r)", {"p": "a", "q": "b", "r": "c"}),
    ):
        assert connection.execute(sql, given).fetchall() == [("A", "bc")]
    assert connection.execute("SELECT $p.upper()", {"p": "a"}).fetchall() == [("A",)]
