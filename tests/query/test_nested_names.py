"""Columns of nested queries are named after what the user wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from tests.writer.table import TableWriter

FIELDS = [{"id": 1, "name": "x", "required": False, "type": "long"}]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[icesql.Connection]:
    table = TableWriter(tmp_path / "numbers", FIELDS)
    table.commit([table.data_file([{"x": 1}, {"x": 2}])])
    with icesql.connect() as connection:
        connection.register_table("numbers", str(table.metadata_path))
        yield connection


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT (SELECT max(x) FROM numbers)", ["(SELECT max(x) FROM numbers)"]),
        (
            "SELECT max(x), (SELECT min(n.x) FROM numbers AS n) + 1 FROM numbers",
            ["max(x)", "((SELECT min(n.x) FROM numbers AS n) + 1)"],
        ),
        ("SELECT EXISTS(SELECT 1 FROM numbers)", ["EXISTS(SELECT 1 FROM numbers)"]),
        ("SELECT (SELECT max(x) FROM numbers) AS most", ["most"]),
        (
            "SELECT * FROM (SELECT (SELECT max(x) FROM numbers)) q",
            ["(SELECT max(x) FROM numbers)"],
        ),
        (
            "SELECT (SELECT max(x) FROM numbers) UNION ALL SELECT 5 ORDER BY 1",
            ["(SELECT max(x) FROM numbers)"],
        ),
        (
            "SELECT (SELECT count(*) FROM (SELECT (SELECT max(x) FROM numbers)) q)",
            ["(SELECT count_star() FROM (SELECT (SELECT max(x) FROM numbers)) AS q)"],
        ),
        ("SELECT (SELECT 1)", ["(SELECT 1)"]),
    ],
)
def test_a_nested_query_names_its_column(
    connection: icesql.Connection, sql: str, names: list[str]
) -> None:
    cursor = connection.execute(sql)
    assert [column[0] for column in cursor.description or ()] == names
    assert cursor.fetchall()


def test_a_table_by_its_path_is_named_by_its_path(
    connection: icesql.Connection, tmp_path: Path
) -> None:
    path = tmp_path / "numbers"
    cursor = connection.execute(f"SELECT (SELECT max(x) FROM iceberg_scan('{path}'))")
    assert [column[0] for column in cursor.description or ()] == [
        f"(SELECT max(x) FROM iceberg_scan('{path}'))"
    ]
