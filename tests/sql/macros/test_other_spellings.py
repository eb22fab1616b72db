"""WITH ROLLUP and FLATTEN in DuckDB's dialect, compared with DuckDB's own forms of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import ColumnNotFoundError, UnsupportedSqlError
from tests.tables import read_table

TABLE = (
    "CREATE TEMP TABLE t AS SELECT * FROM (VALUES (1, [10, 20], 'x'), (2, [], 'y'), "
    "(3, NULL, 'x'), (4, [NULL], 'z')) v(id, l, s)"
)


@pytest.fixture
def connection() -> Iterator[Any]:
    with icesql.connect() as opened:
        opened.execute(TABLE)
        yield opened


@pytest.mark.parametrize(("sql", "same"), read_table(__file__, "other_spellings.tsv"))
def test_they_are_what_duckdb_has_for_them(connection: Any, sql: str, same: str) -> None:
    cursor = connection.execute(sql)
    with duckdb.connect() as reference:
        reference.execute(TABLE)
        expected = reference.execute(same)
        assert [c[0] for c in cursor.description] == [c[0] for c in expected.description]
        assert sorted(map(repr, cursor.fetchall())) == sorted(map(repr, expected.fetchall()))


@pytest.mark.parametrize(("sql", "message"), read_table(__file__, "no_spellings.tsv"))
def test_other_forms_are_errors(connection: Any, sql: str, message: str) -> None:
    with pytest.raises(icesql.Error, match=message):
        connection.execute(sql, [[1]] if "?" in sql else None)


def test_errors_and_macros_are_at_their_places(connection: Any) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"\(line 2, column 7\)"):
        connection.execute("SELECT s,\n      nope FROM t GROUP BY s WITH ROLLUP")
    connection.execute("CREATE MACRO twice(x) AS x * 2")
    sql = "SELECT twice(f.value) FROM t, LATERAL FLATTEN(t.l) f WHERE f.value > 10"
    assert connection.execute(sql).fetchall() == [(40,)]
    sql = "SELECT f.value FROM t, LATERAL FLATTEN(t.l) f WHERE twice(id) > 1 OR nope"
    with pytest.raises(ColumnNotFoundError, match=rf"column {sql.index('nope') + 1}\)"):
        connection.execute(sql)
    with pytest.raises(UnsupportedSqlError, match="getenv"):
        connection.execute("SELECT 1 FROM t, LATERAL FLATTEN([getenv('HOME')]) f")
