"""``null_ok`` of a description: what the schema and the joins say, None where nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("id long!, s string, p struct<a long!>!")


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    table = TableWriter(tmp_path, FIELDS)
    table.commit([table.data_file([{"id": 1, "s": "x", "p": {"a": 1}}])])
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        yield connection


def null_ok(con: Any, sql: str) -> list[bool | None]:
    return [column[6] for column in con.execute(sql).description]


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "null_ok.tsv", 1))
def test_null_ok(con: Any, sql: str, expected: list[bool | None]) -> None:
    assert null_ok(con, sql) == expected


def test_a_column_that_is_never_null_by_its_description_never_is(con: Any) -> None:
    for sql in (
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id <> b.id",
        "SELECT a.id, b.id FROM t a FULL JOIN t b ON a.id <> b.id",
        "SELECT id, count(*) FROM t GROUP BY ROLLUP (id)",
    ):
        rows = con.execute(sql).fetchall()
        for index, may_be_null in enumerate(null_ok(con, sql)):
            assert may_be_null is not False or all(row[index] is not None for row in rows)
