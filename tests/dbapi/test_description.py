"""``null_ok`` of a description: what the schema and the joins say, None where nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
    {
        "id": 3,
        "name": "p",
        "required": True,
        "type": {
            "type": "struct",
            "fields": [{"id": 4, "name": "a", "required": True, "type": "long"}],
        },
    },
]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    table = TableWriter(tmp_path, FIELDS)
    table.commit([table.data_file([{"id": 1, "s": "x", "p": {"a": 1}}])])
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        yield connection


def null_ok(con: Any, sql: str) -> list[bool | None]:
    return [column[6] for column in con.execute(sql).description]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t", [False, True, False]),
        ("FROM t", [False, True, False]),
        ("SELECT s, id AS key, t.id FROM t WHERE id > 0 ORDER BY s", [True, False, False]),
        ("SELECT x.ID FROM t AS x", [False]),
        ("SELECT id, s, count(*) FROM t GROUP BY id, s", [False, True, None]),
        ("SELECT id + 1, coalesce(s, ''), p.a FROM t", [None, None, None]),
        ("SELECT 1, NULL", [None, None]),
        # Joins that may fill a side with NULL.
        ("SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id", [False, False]),
        ("SELECT a.id, b.id FROM t a, t b", [False, False]),
        ("SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id", [False, True]),
        ("SELECT a.id, b.id FROM t a RIGHT JOIN t b ON a.id = b.id", [True, False]),
        ("SELECT a.id, b.id FROM t a FULL JOIN t b ON a.id = b.id", [True, True]),
        ("SELECT * FROM t a LEFT JOIN t b ON a.id = b.id", [False, True, False, True, True, True]),
        (
            "SELECT a.id, b.id, c.id FROM t a JOIN t b ON a.id = b.id RIGHT JOIN t c ON true",
            [True, True, False],
        ),
        ("SELECT id FROM t SEMI JOIN t b ON t.id = b.id", [False]),
        ("SELECT id FROM t a FULL JOIN t b USING (id)", [None]),
        ("SELECT * FROM t a FULL JOIN t b USING (id)", [None] * 5),
        # Columns that are left out of some groups.
        ("SELECT id, count(*) FROM t GROUP BY ROLLUP (id)", [None, None]),
        ("SELECT id, count(*) FROM t GROUP BY CUBE (id)", [None, None]),
        ("SELECT id FROM t GROUP BY GROUPING SETS ((id), ())", [None]),
        # Not looked into.
        ("SELECT id FROM t UNION ALL SELECT NULL", [None]),
        ("SELECT id FROM (SELECT nullif(id, 1) AS id FROM t)", [None]),
        ("WITH t AS (SELECT NULL AS id) SELECT id FROM t", [None]),
        ("SELECT * EXCLUDE (s) FROM t", [None, None]),
        ("SELECT COLUMNS('id|s') FROM t", [None, None]),
        ("SELECT (SELECT max(id) FROM t WHERE false) AS id FROM t", [None]),
        ("SELECT count(*) FROM t", [None]),
        ("DESCRIBE t", [None] * 6),
    ],
)
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
