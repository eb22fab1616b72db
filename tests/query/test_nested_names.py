"""Columns of nested queries are named by the user's text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import icesql
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("x long")


@pytest.fixture
def connection(tmp_path) -> Iterator[icesql.Connection]:
    table = TableWriter(tmp_path / "numbers", FIELDS)
    table.commit([table.data_file([{"x": 1}, {"x": 2}])])
    with icesql.connect() as connection:
        connection.register_table("numbers", str(table.metadata_path))
        yield connection


@pytest.mark.parametrize(("sql", "names"), read_cases(__file__, "nested_names.tsv", 1))
def test_a_nested_query_names_its_column(
    connection: icesql.Connection, sql: str, names: list[str]
) -> None:
    cursor = connection.execute(sql)
    assert [column[0] for column in cursor.description or ()] == names
    assert cursor.fetchall()


def test_a_table_by_its_path_is_named_by_its_path(connection: icesql.Connection, tmp_path) -> None:
    path = tmp_path / "numbers"
    cursor = connection.execute(f"SELECT (SELECT max(x) FROM iceberg_scan('{path}'))")
    assert [column[0] for column in cursor.description or ()] == [
        f"(SELECT max(x) FROM iceberg_scan('{path}'))"
    ]
