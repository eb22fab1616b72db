"""SUMMARIZE and DESCRIBE of a query have the same rows as in DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

QUERIES = [
    "SELECT id, region, amount, ordered_on FROM shop.orders",
    "FROM shop.types",
    "SELECT count(*) FROM shop.orders",
    "SELECT count(*), max(id) FROM shop.orders WHERE id >= 20",
    "SELECT region, count(*) AS n FROM shop.orders WHERE id < 30 GROUP BY ALL",
    "WITH c AS (SELECT id FROM shop.orders) SELECT c.id, 'x' AS \"a) b\" FROM c -- )",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_summary_is_that_of_duckdb(connection: Any, sql: str) -> None:
    rows = connection.execute(sql).arrow()
    found = connection.execute(f"SUMMARIZE {sql}").fetchall()
    with duckdb.connect() as engine:
        engine.execute("SET timezone = 'UTC'")
        engine.register("rows", rows)
        expected = engine.execute("SUMMARIZE rows").fetchall()
    # Sums of floats and quantiles depend on the order of rows.
    sure = [0, 1, 2, 3, 4, 10, 11]
    assert [[row[i] for i in sure] for row in found] == [[row[i] for i in sure] for row in expected]


def test_a_summary_takes_parameters_and_time_travel(connection: Any) -> None:
    cursor = connection.execute(
        "SUMMARIZE SELECT id FROM shop.orders VERSION AS OF 'opening' WHERE id < ?", [5]
    )
    assert [(row[0], row[2], row[3], row[10]) for row in cursor.fetchall()] == [("id", "0", "4", 5)]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_description_reads_nothing(
    connection: Any, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = connection.execute(sql)
    names = [column[0] for column in rows.description]
    rows.close()

    def never(*_: Any) -> Any:
        raise AssertionError("a manifest is read")

    monkeypatch.setattr("icesql.scan.planner.ManifestReader.manifests_of", never)
    described = connection.execute(f"DESCRIBE {sql}")
    assert [column[0] for column in described.description] == [
        "column_name", "column_type", "null", "key", "default", "extra"
    ]  # fmt: skip
    assert [row[0] for row in described.fetchall()] == names


def test_they_stay_on_the_local_engine(connection: Any) -> None:
    connection.execute("SET engine = 'spark'")
    assert connection.execute("DESCRIBE SELECT 1 AS a").fetchone()[:2] == ("a", "INTEGER")
    with pytest.raises(Exception, match="SUMMARIZE on the Spark engine"):
        connection.execute("SUMMARIZE shop.orders")
