"""WITH ROLLUP and FLATTEN in DuckDB's dialect, against what DuckDB has for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import ColumnNotFoundError, UnsupportedSqlError

TABLE = (
    "CREATE TEMP TABLE t AS SELECT * FROM (VALUES (1, [10, 20], 'x'), (2, [], 'y'), "
    "(3, NULL, 'x'), (4, [NULL], 'z')) v(id, l, s)"
)


@pytest.fixture
def connection() -> Iterator[Any]:
    with icesql.connect() as opened:
        opened.execute(TABLE)
        yield opened


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("SELECT s, count(*) FROM t GROUP BY s WITH ROLLUP",
         "SELECT s, count(*) FROM t GROUP BY ROLLUP (s)"),
        ("SELECT s, id, count(*) FROM t GROUP BY s, id WITH CUBE HAVING count(*) > 1",
         "SELECT s, id, count(*) FROM t GROUP BY CUBE (s, id) HAVING count(*) > 1"),
        ("SELECT upper(s), count(*) FROM t GROUP BY 1 WITH ROLLUP",
         "SELECT upper(s), count(*) FROM t GROUP BY ROLLUP (1)"),
        ("SELECT * FROM (SELECT s FROM t GROUP BY s WITH ROLLUP), (SELECT 1 AS n)",
         "SELECT * FROM (SELECT s FROM t GROUP BY ROLLUP (s)), (SELECT 1 AS n)"),
        ("SELECT id, f.value FROM t, LATERAL FLATTEN(input => t.l) f",
         "SELECT id, unnest(l) AS value FROM t"),
        ("SELECT id, value FROM t, TABLE(FLATTEN(t.l))", "SELECT id, unnest(l) AS value FROM t"),
        ("SELECT id, f.index, f.path, f.this, f.key FROM t, LATERAL FLATTEN(t.l) AS f",
         "SELECT id, i AS index, '[' || i || ']' AS path, l AS this, NULL AS key "
         "FROM (SELECT id, l, unnest(range(len(l))) AS i FROM t)"),
        ("SELECT id, f.value FROM t, LATERAL FLATTEN(input => t.l, outer => true) f",
         "SELECT id, unnest(if(coalesce(len(l), 0) = 0, [NULL], l)) AS value FROM t"),
        ("SELECT g.value FROM (SELECT [[1], [2, 3]] AS a) q, LATERAL FLATTEN(input => q.a) f, "
         "LATERAL FLATTEN(input => f.value) g", "SELECT unnest([1, 2, 3]) AS value"),
        ("SELECT f.value FROM (SELECT 'a,b' AS s) q, LATERAL FLATTEN(string_split(q.s, ',')) f",
         "SELECT unnest(['a', 'b']) AS value"),
        ("SELECT flatten([[1]]), s FROM t GROUP BY ROLLUP (s)",
         "SELECT flatten([[1]]), s FROM t GROUP BY ROLLUP (s)"),
    ],
)  # fmt: skip
def test_they_are_what_duckdb_has_for_them(connection: Any, sql: str, same: str) -> None:
    cursor = connection.execute(sql)
    with duckdb.connect() as reference:
        reference.execute(TABLE)
        expected = reference.execute(same)
        assert [c[0] for c in cursor.description] == [c[0] for c in expected.description]
        assert sorted(map(repr, cursor.fetchall())) == sorted(map(repr, expected.fetchall()))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT s FROM t GROUP BY ALL WITH ROLLUP", "GROUP BY ALL WITH ROLLUP"),
        ("SELECT s FROM t WITH ROLLUP", "stands behind GROUP BY keys"),
        ("SELECT 1 FROM t, LATERAL FLATTEN(t.l, mode => 'ARRAY') f", "this argument of FLATTEN"),
        ("SELECT 1 FROM t, LATERAL FLATTEN() f", "FLATTEN needs a list"),
        ("SELECT 1 FROM t, LATERAL FLATTEN(t.l, outer => id > 1) f", "no constant"),
        ("SELECT 1 FROM t CROSS JOIN LATERAL FLATTEN(t.l, outer => true) f", "behind this join"),
        ("SELECT 1 FROM t, LATERAL FLATTEN(?) f", r"write \$1"),
        ("SELECT 1 FROM t, LATERAL FLATTEN(t.s) f", "LIST"),
    ],
)
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
