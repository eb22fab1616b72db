"""Fragments: a query cut into fragments gives the same rows for any division of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from icesql.engine.duckdb.sql.composed import renamed_sql
from icesql.engine.result_schema import ResultColumn, declare
from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.cut import cut_fragments, filtered
from icesql.engine.spark.fragments.fragment import Division, Fragment
from icesql.engine.spark.scans import FRAGMENTS, WHOLE, Scans
from icesql.engine.spark.sql.dialect import spelled_sql, write_added
from tests.spark.comparison import both
from tests.writer.fields import fields
from tests.writer.table import TableWriter

SCHEMA = {
    "__scan_0": {"x": "BIGINT", "k": "VARCHAR", "d": "DECIMAL(12,2)"},
    "__scan_1": {"x": "BIGINT", "y": "INTEGER", "s": "VARCHAR"},
    "__scan_2": {"y": "INTEGER", "n": "VARCHAR"},
}
ROWS = {
    "__scan_0": "SELECT CASE WHEN i % 7 <> 3 THEN i % 20 END, CASE WHEN i % 5 <> 4 THEN 'k' || i % 5 END, "
    "CASE WHEN i % 11 <> 0 THEN (i * 37 % 100) / 4.0 END FROM range(97) r(i)",
    "__scan_1": "SELECT CASE WHEN i % 6 <> 5 THEN i END, i % 4, 's' || i % 3 FROM range(15) r(i)",
    "__scan_2": "SELECT i, 'n' || i FROM range(3) r(i)",
}
CUT = """
SELECT count(*), sum(x), avg(d), min(k), max(d) FROM __scan_0
SELECT count(*), sum(x), avg(d) FROM __scan_0 WHERE x > 1000
SELECT k, count(*), sum(d), avg(x), min(x), max(k) FROM __scan_0 GROUP BY k ORDER BY k
SELECT k, count(*) FROM __scan_0 WHERE x % 3 <> 1 GROUP BY k HAVING count(*) > 3 ORDER BY 2, 1
SELECT x % 3 AS m, sum(d) FILTER (WHERE k = 'k1') FROM __scan_0 GROUP BY m ORDER BY m
SELECT k, x FROM __scan_0 GROUP BY k, x ORDER BY k, x
SELECT s, sum(d), count(*) FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x GROUP BY s ORDER BY s
SELECT s, count(*) FROM __scan_0 a, __scan_1 b WHERE a.x = b.x GROUP BY s ORDER BY s
SELECT s, k, count(*) FROM __scan_0 a LEFT JOIN __scan_1 b ON a.x = b.x GROUP BY s, k ORDER BY s, k
SELECT s, count(a.x), count(*) FROM __scan_0 a RIGHT JOIN __scan_1 b ON a.x = b.x GROUP BY s ORDER BY s
SELECT count(*) FROM __scan_0 a SEMI JOIN __scan_1 b ON a.x = b.x
SELECT count(*) FROM __scan_0 a ANTI JOIN __scan_1 b ON a.x = b.x
SELECT count(*), sum(a.d) FROM __scan_0 a CROSS JOIN __scan_2 c
SELECT n, sum(d) FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x JOIN __scan_2 c ON b.y = c.y GROUP BY n ORDER BY n
SELECT n, sum(d) FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x LEFT JOIN __scan_2 c ON b.y = c.y GROUP BY n ORDER BY n
SELECT n, m, sum(v) FROM (SELECT c.n, a.x % 2 AS m, a.d * 2 AS v FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x JOIN __scan_2 c ON b.y = c.y WHERE a.d > 1) q GROUP BY n, m ORDER BY n, m
SELECT k, sum(d) FROM __scan_0 WHERE x IN (SELECT x FROM __scan_1 WHERE y > 0) GROUP BY k ORDER BY k
SELECT k, sum(d) FROM __scan_0 WHERE x NOT IN (SELECT x FROM __scan_1 WHERE x IS NOT NULL) GROUP BY k ORDER BY k
SELECT k, sum(d) FROM __scan_0 a WHERE EXISTS (SELECT 1 FROM __scan_1 b WHERE b.x = a.x AND b.s = 's1') GROUP BY k ORDER BY k
SELECT count(*) FROM __scan_0 a WHERE d > (SELECT avg(b.x) FROM __scan_1 b)
SELECT count(*) FROM __scan_0 a WHERE d > (SELECT max(b.y) FROM __scan_1 b WHERE b.x = a.x)
SELECT k, count(*) FROM __scan_0 a JOIN (SELECT x, count(*) AS c FROM __scan_1 GROUP BY x) b ON a.x = b.x WHERE c = 1 GROUP BY k ORDER BY k
SELECT k, c FROM (SELECT k, count(*) AS c FROM __scan_0 GROUP BY k) q WHERE c > 10 ORDER BY k
SELECT k, rank() OVER (ORDER BY sum(d) DESC) FROM __scan_0 GROUP BY k ORDER BY k
WITH q AS (SELECT k, sum(d) AS v FROM __scan_0 GROUP BY k) SELECT a.k, b.v FROM q a JOIN q b ON a.v >= b.v ORDER BY 1, 2
SELECT k, d FROM __scan_0 ORDER BY d DESC, k, x LIMIT 5
SELECT k, d AS v, d + 1 FROM __scan_0 ORDER BY v NULLS FIRST, 3 DESC, k, x LIMIT 7 OFFSET 4
SELECT k, x FROM __scan_0 WHERE d > 3 ORDER BY d + 1 DESC NULLS LAST, k NULLS FIRST, d, x LIMIT 6
SELECT a.k, b.s FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x ORDER BY a.d, a.k, b.s, b.x LIMIT 9
SELECT count(*) FROM (SELECT x FROM __scan_0 LIMIT 50) q
SELECT count(*) FROM (SELECT x FROM __scan_0 LIMIT 50 OFFSET 90) q
SELECT x FROM __scan_0 LIMIT 0
SELECT DISTINCT k FROM __scan_0 ORDER BY k
SELECT DISTINCT k, x % 2 AS m FROM __scan_0 ORDER BY m DESC, k LIMIT 4
SELECT DISTINCT b.s FROM __scan_0 a LEFT JOIN __scan_1 b ON a.x = b.x ORDER BY 1
SELECT sum(q.x) FROM (SELECT DISTINCT x FROM __scan_0) q
SELECT x, x FROM __scan_0 ORDER BY 1, 2 LIMIT 3
SELECT a.k, b.s FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x ORDER BY a.d, a.k, b.s, b.x
SELECT k, d FROM __scan_0 a WHERE EXISTS (SELECT * FROM __scan_1 b WHERE b.x = a.x) AND d > (SELECT avg(y) FROM __scan_2) ORDER BY 1, 2, x
SELECT a.x, c.v FROM __scan_0 a LEFT JOIN (SELECT x, max(y) AS v FROM __scan_1 GROUP BY x) c ON a.x = c.x ORDER BY 1, 2
SELECT k FROM __scan_0 GROUP BY k ORDER BY sum(d), k LIMIT 2
SELECT k, count(*) FROM __scan_0 GROUP BY k UNION ALL SELECT s, sum(x) FROM __scan_1 GROUP BY s ORDER BY 1, 2
SELECT (SELECT max(d) FROM __scan_0), s, count(*) FROM __scan_1 GROUP BY s ORDER BY s
""".strip().splitlines()
UNCUT = """
SELECT count(DISTINCT x) FROM __scan_0
SELECT x FROM __scan_0
SELECT a.x FROM __scan_0 a FULL JOIN __scan_1 b ON a.x = b.x
SELECT a.x, b.y FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x LIMIT 200000
SELECT a.x, sum(a.x) OVER () FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x
SELECT sum(x) OVER () FROM __scan_0 LIMIT 3
SELECT k, count(*) FROM __scan_0 GROUP BY ROLLUP (k)
SELECT count(*) FROM __scan_0 a FULL JOIN __scan_1 b ON a.x = b.x
SELECT DISTINCT ON (k) k, x FROM __scan_0
SELECT list(x) FROM __scan_0
SELECT x FROM __scan_0 ORDER BY x LIMIT 200000
SELECT k, x FROM __scan_0 ORDER BY row_number() OVER (ORDER BY x) LIMIT 2
""".strip().splitlines()

WHOLE_ONLY = """
SELECT k, count(DISTINCT x), sum(DISTINCT d) FROM __scan_0 GROUP BY k ORDER BY k
SELECT k, sum(d) FROM __scan_0 GROUP BY ROLLUP (k) ORDER BY k, 2
SELECT sum(s) FROM (SELECT k, sum(d) AS s FROM __scan_0 WHERE x > 999 GROUP BY ROLLUP (k)) q
SELECT a.x, b.y FROM __scan_0 a FULL JOIN __scan_1 b ON a.x = b.x ORDER BY ALL
SELECT x, row_number() OVER (PARTITION BY k ORDER BY x, d) AS n FROM __scan_0 QUALIFY n < 3 ORDER BY ALL
WITH q AS (SELECT k, sum(d) AS v FROM __scan_0 GROUP BY k) SELECT k, v FROM q WHERE v = (SELECT max(v) FROM q)
WITH q AS (SELECT x FROM __scan_1), r AS (SELECT x + 1 AS x FROM q) SELECT q.x, r.x FROM q, r WHERE q.x < r.x ORDER BY ALL
SELECT x FROM __scan_0 INTERSECT SELECT x FROM __scan_1 ORDER BY x
SELECT x FROM __scan_1 EXCEPT SELECT x FROM __scan_0 ORDER BY 1 DESC
SELECT k AS s FROM __scan_0 UNION SELECT s FROM __scan_1 ORDER BY s DESC LIMIT 3
SELECT count(*) AS n, count(*) AS n FROM __scan_0 a, __scan_1 b WHERE a.x = b.x
SELECT a.x, (SELECT sum(b.y) FROM __scan_1 b WHERE b.x = a.x) FROM __scan_0 a ORDER BY ALL
""".strip().splitlines()


class Everything(FragmentChoice):
    """Accepts each possible fragment, and divides the candidate with one number."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def divided(self, candidates: Sequence[int], inside: Any, keys: Any) -> Division:
        return Division(candidates[self.wanted % len(candidates)])

    def undivided(self, inside: Sequence[int]) -> Division | None:
        return None

    def is_dearer(self, fragments: Any, left: exp.Expr, alone: Fragment) -> bool:
        return True

    def columns(self, tree: exp.Select) -> tuple[ResultColumn, ...] | None:
        with tables() as con:
            try:
                relation = con.sql(renamed_sql(tree, {}))
            except duckdb.Error:
                return None
            return tuple(map(ResultColumn, relation.columns, map(declare, relation.types)))


class Together(Everything):
    """Runs each query in one task."""

    def undivided(self, inside: Sequence[int]) -> Division:
        return Division(inside[0], 1)


def duckdb_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="duckdb"))


def tables() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, schema in SCHEMA.items():
        kinds = ", ".join(f"{column} {kind}" for column, kind in schema.items())
        con.execute(f"CREATE TABLE {name} ({kinds})")
        con.execute(f"INSERT INTO {name} {ROWS[name]}")
    return con


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with tables() as made:
        yield made


def tree_of(sql: str) -> exp.Expr:
    tree = qualify(parse_one(sql, dialect="duckdb"), dialect="duckdb", schema=dict(SCHEMA), validate_qualify_columns=False)  # fmt: skip
    return annotate_types(tree, schema=dict(SCHEMA), dialect="duckdb")


def make_parts(con: Any, fragment: Any, parts: int) -> None:
    """The fragment's table: its results over unequal parts, one of them empty."""
    for part in range(parts + 1):
        cut = "false" if part == parts else f"hash(rowid) % {parts} = {part}"
        con.execute(
            f"CREATE OR REPLACE TABLE part AS SELECT * FROM __scan_{fragment.scan} WHERE {cut}"
        )
        sql = renamed_sql(fragment.tree, {f"__scan_{fragment.scan}": "part"})
        if part == 0:
            con.execute(f'CREATE TABLE "{fragment.name}" AS {sql}')
        else:
            con.execute(f'INSERT INTO "{fragment.name}" {sql}')


# Each candidate once: a query has no more of them than scans.
@pytest.mark.parametrize(
    ("sql", "wanted"), [(sql, at) for sql in CUT for at in range(min(3, sql.count("__scan_")))]
)
def test_a_cut_query_over_any_division_is_the_query(con: Any, sql: str, wanted: int) -> None:
    tree, fragments = cut_fragments(tree_of(sql), Everything(wanted))
    assert fragments, "nothing was cut"
    for fragment in fragments:
        make_parts(con, fragment, 3)
    cut = write_added(tree, lambda node: spelled_sql(node, duckdb_text)).sql(dialect="duckdb")
    assert con.sql(cut).fetchall() == con.sql(sql).fetchall(), cut
    assert con.sql(cut).columns == con.sql(tree_of(sql).sql(dialect="duckdb")).columns


@pytest.mark.parametrize("sql", [*WHOLE_ONLY, *CUT])
def test_one_task_gives_the_rows_of_a_whole_query(con: Any, sql: str) -> None:
    before = tree_of(sql)
    tree, fragments = cut_fragments(before, Together(0))
    (fragment,) = fragments
    assert fragment.is_whole_query
    assert before == tree_of(sql)
    con.execute(f'CREATE TABLE "{fragment.name}" AS {renamed_sql(fragment.tree, {})}')
    found = con.sql(tree.sql(dialect="duckdb"))
    expected = con.sql(sql)
    assert found.fetchall() == expected.fetchall()
    assert found.columns == con.sql(before.sql(dialect="duckdb")).columns


def test_a_query_that_names_something_else_is_not_whole() -> None:
    tree = tree_of("SELECT count(DISTINCT a.x) FROM __scan_0 a, range(3) r(i), elsewhere e")
    assert not cut_fragments(tree, Together(0))[1]
    inner = tree_of("SELECT 1 FROM q, (WITH q AS (SELECT x FROM __scan_0) SELECT x FROM q) p")
    assert not [each for each in cut_fragments(inner, Together(0))[1] if each.is_whole_query]


def test_the_whole_query_is_switched_off() -> None:
    tree = tree_of("SELECT count(DISTINCT x) FROM __scan_0")
    assert cut_fragments(tree, Together(0))[1]
    assert not cut_fragments(tree, Together(0), whole=False)[1]


@pytest.mark.parametrize("sql", UNCUT)
def test_what_is_not_the_sum_of_its_parts_is_left_alone(sql: str) -> None:
    tree = tree_of(sql)
    cut, fragments = cut_fragments(tree, Everything(0))
    assert not fragments
    assert cut == tree


def test_a_row_that_only_a_left_join_keeps_is_not_made_by_a_part() -> None:
    sql = "SELECT count(*) FROM __scan_1 b LEFT JOIN __scan_0 a ON a.x = b.x"
    _, (fragment,) = cut_fragments(tree_of(sql), Everything(1))
    assert fragment.scan == 1


def test_a_query_of_the_row_outside_is_no_fragment() -> None:
    sql = "SELECT x, (SELECT sum(b.y) FROM __scan_1 b WHERE b.x = a.x) FROM __scan_0 a"
    assert not cut_fragments(tree_of(sql), Everything(0))[1]


@pytest.mark.parametrize(
    ("sql", "scan", "condition"),
    [
        ("SELECT a.k FROM __scan_0 a WHERE a.x > 3", 0, '"a"."x" > 3'),
        ("SELECT a.k FROM __scan_0 a JOIN __scan_1 b ON a.x = b.x WHERE a.x > 3 AND b.y = 1", 1, '"b"."y" = 1'),
        ("SELECT a.k FROM __scan_0 a LEFT JOIN __scan_1 b ON a.x = b.x WHERE b.y IS NULL", 1, None),
        ("SELECT a.k FROM __scan_0 a LEFT JOIN __scan_1 b ON a.x = b.x WHERE a.x = 1 OR b.y = 2", 0, None),
        ("SELECT a.k FROM __scan_0 a WHERE a.x IN (SELECT x FROM __scan_1)", 0, None),
        ("SELECT a.k FROM __scan_0 a", 0, None),
    ],
)  # fmt: skip
def test_a_scan_takes_the_conditions_on_it_alone(
    sql: str, scan: int, condition: str | None
) -> None:
    tree = tree_of(sql)
    made = filtered(tree, scan, list(SCHEMA[f"__scan_{scan}"]), "f", Everything(0))
    assert tree == tree_of(sql)
    found = None if made is None else made.tree.args["where"].this.sql(dialect="duckdb")
    assert found == condition


@pytest.fixture
def written(tmp_path: Path, con: Any) -> dict[str, Path]:
    """The tables as Iceberg tables of three files each, named t0, t1, t2."""
    kinds = {
        "BIGINT": "long",
        "VARCHAR": "string",
        "INTEGER": "int",
        "DECIMAL(12,2)": "decimal(12, 2)",
    }
    paths = {}
    for name, schema in SCHEMA.items():
        text = ", ".join(f"{column} {kinds[kind]}" for column, kind in schema.items())
        table = TableWriter(tmp_path / name, fields(text))
        rows = [dict(zip(schema, row, strict=True)) for row in con.sql(f"FROM {name}").fetchall()]
        table.commit([table.data_file(rows[part::3]) for part in range(3)])
        paths[f"t{name[-1]}"] = table.metadata_path
    return paths


def test_spark_puts_the_parts_together(connect: Any, written: dict[str, Path]) -> None:
    wrong = []
    with both(connect, written) as (local, spark):
        spark.execute("SET split_target_size = 1")
        for sql in (each.replace("__scan_", "t") for each in CUT[::3]):
            found, expected = spark.execute(sql), local.execute(sql).fetchall()
            if found.fetchall() != expected:
                wrong.append(sql)
            # Pruning may leave no files to read.
            if FRAGMENTS not in (found._result.groups or (FRAGMENTS,)):
                wrong.append(f"no fragment: {sql}")
    assert not wrong


def test_one_task_of_spark_gives_what_the_local_engine_gives(
    connect: Any, written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scans, "ways", frozenset({WHOLE, FRAGMENTS}))
    statements = [
        *WHOLE_ONLY,
        "SELECT sum(x), sum(x) // 2, count(DISTINCT d), max(k) FROM __scan_0",
        "SELECT k, list(x ORDER BY x) FROM __scan_0 GROUP BY k ORDER BY k",
        "SELECT count(DISTINCT x) FROM __scan_0 WHERE x > 1000",
        "SELECT DISTINCT x, y FROM __scan_1 WHERE x IN (SELECT x FROM __scan_0) ORDER BY y DESC, x",
    ]
    alone = 0
    with both(connect, written) as (local, spark):
        for sql in (each.replace("__scan_", "t") for each in statements):
            found, expected = spark.execute(sql), local.execute(sql)
            assert found.fetchall() == expected.fetchall(), sql
            assert found.description == expected.description, sql
            alone += WHOLE in found._result.groups
    # Lists are not sent, one statement combines a row of each task, and two read no file.
    assert alone == len(statements) - 4
