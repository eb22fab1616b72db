"""TABLESAMPLE, PIVOT and UNPIVOT run in DuckDB, over all rows of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.query.first_queries import with_pivot_values
from tests.tables import read_lines, read_table


@pytest.mark.parametrize("sql", read_lines(__file__, "pivots.tsv"))
def test_a_pivot_is_that_of_duckdb(connection: Any, sql: str) -> None:
    rows = connection.execute("FROM shop.orders").arrow()
    found = connection.execute(sql.replace("{}", "shop.orders")).arrow().to_pylist()
    with duckdb.connect() as engine:
        engine.execute("SET timezone = 'UTC'")
        engine.register("rows", rows)
        expected = engine.sql(sql.replace("{}", "rows")).to_arrow_table().to_pylist()
    # Rows are dicts in the order of the columns.
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_pivot_takes_parameters_and_time_travel(connection: Any) -> None:
    source = "shop.orders VERSION AS OF 'opening'"
    found = connection.execute(
        f"PIVOT (FROM {source} WHERE id < ?) ON region IN (?) USING count(*) AS n GROUP BY region "
        "ORDER BY region",
        [15, "eu"],
    )
    expected = connection.execute(
        f"SELECT region, count(*) FILTER (WHERE region = 'eu') AS eu_n FROM {source} "
        "WHERE id < 15 GROUP BY region ORDER BY region"
    )
    assert [each[0] for each in found.description] == ["region", "eu_n"]
    assert found.fetchall() == expected.fetchall()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[icesql.Connection]:
    """A connection with its own table s.t (k, g, n)."""
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute(
            "CREATE TABLE s.t AS SELECT * FROM (VALUES ('a', 1, 1), ('b', 2, 2)) v(k, g, n)"
        )
        yield opened


def test_values_are_read_with_parameters_at_the_snapshot_of_the_query(
    own: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "PIVOT (FROM s.t WHERE n < ?) ON k USING sum(n) GROUP BY g ORDER BY g"
    read = with_pivot_values

    def beside_a_writer(*given: Any, **options: Any) -> Any:
        made = read(*given, **options)
        own.cursor().execute("INSERT INTO s.t VALUES ('c', 3, 3)")
        own.cursor().execute("DELETE FROM s.t WHERE k = 'a'")
        return made

    monkeypatch.setattr("icesql.query.first_queries.with_pivot_values", beside_a_writer)
    found = own.execute(sql, [10])
    assert [each[0] for each in found.description or ()] == ["g", "a", "b"]
    assert found.fetchall() == [(1, 1, None), (2, None, 2)]
    monkeypatch.undo()
    for caches in ("on", "off", "on"):
        own.execute(f"SET caches = {caches}")
        found = own.execute(sql, [10])
        assert [each[0] for each in found.description or ()] == ["g", "b", "c"]
        assert found.fetchall() == [(2, 2, None), (3, None, 3)]


def test_a_pivot_is_explained(own: icesql.Connection) -> None:
    told = own.execute("EXPLAIN PIVOT s.t ON k USING sum(n) GROUP BY g ORDER BY g").fetchall()
    assert told[0] == ("scan 0: s.t",)


# The placeholder for values that are not read yet, as a value and in a text of the user.
STANDS_FOR = "\ue000values\ue000"


def test_a_value_may_be_any_text(connection: Any) -> None:
    values = f"(VALUES ('{STANDS_FOR}', 1), (')', 2)) v(k, x)"
    pivot = f"PIVOT (FROM {values}) ON k USING sum(x)"
    assert connection.execute(pivot).arrow().to_pylist() == [{")": 2, STANDS_FOR: 1}]
    grouped = f"PIVOT (FROM {values} WHERE (k) IN ('{STANDS_FOR}')) ON k USING sum(x)"
    assert connection.execute(grouped).arrow().to_pylist() == [{STANDS_FOR: 1}]
    assert connection.execute(f"SELECT '{STANDS_FOR}'").fetchall() == [(STANDS_FOR,)]
    sql = f"SELECT x FROM {values} WHERE k IN ('{STANDS_FOR}')"
    assert connection.execute(sql).fetchall() == [(1,)]


SAMPLES = [
    "shop.orders TABLESAMPLE {}",
    "shop.orders AS o TABLESAMPLE {}",
    "(SELECT * FROM shop.orders) TABLESAMPLE {}",
    "shop.orders USING SAMPLE {}",
]


@pytest.mark.parametrize("source", SAMPLES)
def test_a_sample_is_taken_before_any_condition(connection: Any, source: str) -> None:
    (total,) = connection.execute("SELECT count(*) FROM shop.orders").fetchone()
    for amount, expected in [("7 ROWS", 7), ("100%", total)]:
        sql = f"SELECT count(*) FROM {source.format(amount)}"
        assert connection.execute(sql).fetchone() == (expected,)
    # Pushdown, or counts from metadata, would return 5, 1 and 0 every time.
    sampled = source.format("1 ROWS")
    seen = {connection.execute(f"SELECT max(id) FROM {sampled}").fetchone() for _ in range(20)}
    assert len(seen) > 1
    if "USING" not in source:
        sql = f"SELECT count(*) FROM {sampled} WHERE id < 5"
        assert {connection.execute(sql).fetchone()[0] for _ in range(20)} <= {0, 1}
        told = [row[0] for row in connection.execute(f"EXPLAIN {sql} LIMIT 2").fetchall()]
        assert "  filter: true" in told


def test_a_condition_does_not_reach_a_sample_through_a_join_or_derived_table(
    connection: Any,
) -> None:
    for sql in (
        "SELECT * FROM (SELECT * FROM shop.orders USING SAMPLE 5 ROWS) WHERE id = 3",
        "WITH s AS (SELECT * FROM shop.orders TABLESAMPLE 5 ROWS) SELECT * FROM s WHERE id = 3",
        "SELECT * FROM shop.orders AS o TABLESAMPLE 5 ROWS JOIN shop.customers AS c "
        "ON o.id = c.id WHERE c.id = 3",
        "SELECT * FROM shop.orders AS o TABLESAMPLE 5 ROWS WHERE o.id IN (SELECT 3)",
    ):
        told = [row[0] for row in connection.execute(f"EXPLAIN {sql}").fetchall()]
        start = told.index("scan 0: shop.orders")
        assert told[start + 3] == "  filter: true", sql


def test_a_seed_repeats_a_sample(connection: Any) -> None:
    connection.execute("SET threads = 1")
    sql = "SELECT id FROM shop.orders TABLESAMPLE reservoir(5 ROWS) REPEATABLE (7) ORDER BY id"
    first = connection.execute(sql).fetchall()
    assert len(first) == 5
    assert connection.execute(sql).fetchall() == first


@pytest.mark.parametrize(("sql", "error", "message"), read_table(__file__, "no_pivots.tsv"))
def test_what_they_may_not_do(connection: Any, sql: str, error: str, message: str) -> None:
    with pytest.raises(getattr(icesql, error), match=message):
        connection.execute(sql).fetchall()
