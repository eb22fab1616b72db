"""Rows that another writer deleted stay deleted, whatever writes their files anew."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from tests.writer.second import delete_by_key

CATALOGS = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def table(con: icesql.Connection, version: int, **properties: str) -> None:
    """Rows (0, 0) to (9, 9) in one file."""
    listed = ", ".join(
        f"'{name}' = '{value}'"
        for name, value in {"format-version": str(version), **properties}.items()
    )
    con.execute(f"CREATE TABLE s.t (id BIGINT NOT NULL, x INT) TBLPROPERTIES ({listed})")
    con.execute("INSERT INTO s.t SELECT range, range FROM range(10)")


def numbers(con: icesql.Connection) -> list[int]:
    return [each for (each,) in con.execute("SELECT id FROM s.t ORDER BY id").fetchall()]


@CATALOGS
@VERSIONS
@pytest.mark.parametrize(
    "statement",
    [
        "CALL system.rewrite_data_files('s.t', where => 'id < 5', "
        "options => map('rewrite-all', 'true'))",
        "CALL system.rewrite_data_files('s.t', where => 'x < 5', "
        "options => map('rewrite-all', 'true'))",
        "OPTIMIZE s.t WHERE id < 5",
    ],
)
def test_compaction_of_some_rows_applies_the_deletes_of_all(
    con: icesql.Connection, catalog: dict[str, Any], version: int, statement: str
) -> None:
    table(con, version)
    for n in range(20, 26):
        con.execute(f"INSERT INTO s.t SELECT {n}, range FROM range(1)")
    delete_by_key(catalog, [7, 24])
    before = [0, 1, 2, 3, 4, 5, 6, 8, 9, 20, 21, 22, 23, 25]
    assert numbers(con) == before
    con.execute(statement)
    assert numbers(con) == before
