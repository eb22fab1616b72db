"""SHOW and DESCRIBE as tables, and information_schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.sqlite import SqliteCatalog
from icesql.errors import AmbiguousTableError, TableNotFoundError, UnsupportedSqlError
from tests.tables import read_lines


@pytest.mark.parametrize("sql", read_lines(__file__, "shown_statements.tsv"))
def test_a_statement_has_the_same_rows_in_from(connection: Any, sql: str) -> None:
    alone = connection.execute(sql)
    names = [column[0] for column in alone.description]
    rows = alone.fetchall()
    inside = connection.execute(f"SELECT * FROM ({sql})")
    assert [column[0] for column in inside.description] == names
    assert inside.fetchall() == rows
    (counted,) = connection.execute(f"SELECT count(*) FROM ({sql}) AS s").fetchone()
    assert counted == len(rows)


def test_statements_are_filtered_and_joined(connection: Any) -> None:
    found = connection.execute(
        "SELECT r.name, s.operation FROM (SHOW REFS FROM shop.orders) AS r "
        "JOIN (SHOW SNAPSHOTS FROM shop.orders) AS s USING (snapshot_id) WHERE r.type = ? "
        "ORDER BY ALL",
        ["tag"],
    )
    assert found.fetchall() == [("opening", "append")]
    found = connection.execute(
        "WITH c AS (FROM (DESC shop.customers)) SELECT (SELECT count(*) FROM c), t.id "
        "FROM shop.customers AS t WHERE t.id IN (SELECT 2 FROM (SHOW SCHEMAS))"
    )
    assert found.fetchall() == [(2, 2)]


def test_a_name_that_stands_for_a_statement_is_none_of_the_user(connection: Any) -> None:
    with pytest.raises(AmbiguousTableError):
        connection.execute('SELECT * FROM (SHOW TABLES), "__sh0"')
    with pytest.raises(TableNotFoundError):
        connection.execute('SELECT * FROM (SHOW TABLES), "__sh1"')
    with pytest.raises(UnsupportedSqlError, match="reserved"):
        connection.execute('SELECT * FROM (SHOW TABLES), shop.orders AS "__sh0"')


def test_a_parameter_inside_is_not_counted_before_one_in_front(
    connection: Any, warehouse: Path
) -> None:
    (path,) = connection.execute(
        "SELECT file FROM shop.orders.metadata_log_entries LIMIT 1"
    ).fetchone()
    inside = "count(*) FROM (DESC iceberg_scan({}))"
    with pytest.raises(UnsupportedSqlError, match=r"behind another one .*number them"):
        connection.execute(f"SELECT ?, {inside.format('?')}", ["a", path])
    numbered = connection.execute(f"SELECT $1, {inside.format('$2')}", ["a", path])
    assert numbered.fetchall() == [("a", 6)]
    after = connection.execute(f"SELECT {inside.format('?')} WHERE 'a' = ?", [path, "a"])
    assert after.fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("condition", "listed", "loaded"),
    [
        ("table_name = 'orders' AND table_schema = 'shop'", [("shop",)], ["orders"]),
        ("table_schema = 'nowhere'", [], []),
        ("table_catalog = 'other'", [], []),
        ("table_name IN ('orders', 'x') OR table_name = 'types'", [None], ["orders", "types"]),
        ("column_name = 'id'", [None], ["customers", "orders", "types"]),
    ],
)
def test_only_what_the_filter_allows_is_listed_and_loaded(
    connection: Any,
    monkeypatch,
    condition: str,
    listed: list[Any],
    loaded: list[str],
) -> None:
    asked: list[Any] = []
    opened: list[str] = []
    tables, load = SqliteCatalog.tables, SqliteCatalog.load

    def telling_tables(self: SqliteCatalog, namespace: Any = None) -> Any:
        asked.append(namespace)
        return tables(self, namespace)

    def telling_load(self: SqliteCatalog, identifier: Any) -> Any:
        opened.append(identifier[-1])
        return load(self, identifier)

    monkeypatch.setattr(SqliteCatalog, "tables", telling_tables)
    monkeypatch.setattr(SqliteCatalog, "load", telling_load)
    connection.execute(f"FROM information_schema.columns WHERE {condition}").fetchall()
    assert (asked, sorted(opened)) == (listed, loaded)


def test_a_service_sees_its_own_catalog_alone(warehouse: Path) -> None:
    with icesql.connect(warehouse=str(warehouse), service=True) as connection:
        sql = "SELECT DISTINCT table_schema FROM information_schema.columns"
        assert connection.execute(sql).fetchall() == [("shop",)]
        with pytest.raises(UnsupportedSqlError, match="of the catalog other"):
            connection.execute("FROM other.information_schema.tables")


def test_explain_shows_what_a_statement_is_asked(connection: Any) -> None:
    sql = "EXPLAIN FROM information_schema.tables WHERE table_schema = 'shop'"
    assert [row[0] for row in connection.execute(sql).fetchall()][:2] == [
        "scan 0: information_schema.tables",
        "  filter: table_schema = 'shop'",
    ]


@pytest.mark.parametrize("source", ["(SHOW TABLES)", "information_schema.tables"])
def test_a_text_for_spark_holds_none(warehouse: Path, source: str) -> None:
    with icesql.connect(warehouse=str(warehouse), dialect="spark") as connection:
        assert len(connection.execute(f"SELECT * FROM {source}").fetchall()) == 3
        connection.execute("SET engine = 'spark'")
        with pytest.raises(UnsupportedSqlError, match="as a table on the Spark engine"):
            connection.execute(f"SELECT * FROM {source}")
