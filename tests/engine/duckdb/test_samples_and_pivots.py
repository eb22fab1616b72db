"""TABLESAMPLE, PIVOT and UNPIVOT are DuckDB's own, over all rows of their tables."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from icesql.errors import ColumnNotFoundError, Error, UnsupportedSqlError

PIVOTS = [
    "PIVOT {} ON region IN ('eu', 'us') USING sum(amount) AS total, count(*) AS n GROUP BY customer_id",
    "PIVOT {} ON region IN ('eu', 'us') USING max(id) GROUP BY customer_id ORDER BY customer_id LIMIT 2",
    "PIVOT {} ON region IN ('eu'), customer_id IN (1, 2) USING count(*)",
    "SELECT * FROM {} PIVOT (sum(id) FOR region IN ('eu' AS e, 'us') GROUP BY customer_id) AS p "
    "WHERE p.customer_id > 1",
    "FROM (PIVOT (SELECT region, id FROM {} WHERE id < 7) ON region IN ('eu') USING sum(id))",
    "WITH p AS (PIVOT {} ON region IN ('us') USING count(*) GROUP BY customer_id) "
    "SELECT p.us FROM p WHERE customer_id = 1",
    "UNPIVOT {} ON id, customer_id INTO NAME what VALUE number",
    "UNPIVOT (SELECT id, customer_id FROM {}) ON COLUMNS(*)",
    "SELECT what, sum(number) FROM {} UNPIVOT (number FOR what IN (id, customer_id)) GROUP BY what",
    "SELECT * FROM {} UNPIVOT INCLUDE NULLS (x FOR n IN (region)) WHERE id < 3",
]


@pytest.mark.parametrize("sql", PIVOTS)
def test_a_pivot_is_that_of_duckdb(connection: Any, sql: str) -> None:
    rows = connection.execute("FROM shop.orders").arrow()
    found = connection.execute(sql.format("shop.orders")).arrow().to_pylist()
    with duckdb.connect() as engine:
        engine.execute("SET timezone = 'UTC'")
        engine.register("rows", rows)
        expected = engine.sql(sql.format("rows")).to_arrow_table().to_pylist()
    # Rows are dicts in the order of columns.
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
    # What is pushed, or counted from metadata, would make these 5, 1 and 0 every time.
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


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("PIVOT shop.orders ON region IN ('eu') USING sum(read_text('x'))", UnsupportedSqlError,
         "read_text"),
        ("PIVOT 'x.csv' ON a IN (1) USING sum(b)", UnsupportedSqlError, "a file as a table"),
        ("PIVOT shop.orders ON nope IN (1) USING count(*)", Error, "nope"),
        ("SELECT nope FROM shop.orders USING SAMPLE 5", ColumnNotFoundError, "nope"),
    ],
)  # fmt: skip
def test_what_they_may_not_do(connection: Any, sql: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        connection.execute(sql).fetchall()


def test_they_are_refused_on_spark(connection: Any) -> None:
    connection.execute("SET engine = 'spark'")
    for sql in ("PIVOT shop.orders ON id IN (1) USING sum(id)", "FROM shop.orders USING SAMPLE 5"):
        with pytest.raises(UnsupportedSqlError, match="it runs with engine = 'local'"):
            connection.execute(sql)
