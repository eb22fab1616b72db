"""The rest of a query above one row of each task: the local engine's rows, types and errors."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from tests.spark.comparison import both

ONE_ROW = """
SELECT count(*), count(i), sum(i), avg(i), min(i), max(i), sum(big) FROM t
SELECT sum(f), avg(d), min(d), max(d), min(f), max(f) FROM t
SELECT sum(dec), avg(dec), min(dec), max(wide), sum(wide) FROM t
SELECT min(s), max(s), min(dt), max(ts), min(tz), max(flag) FROM t
SELECT count(*), sum(i), max(s) FROM t WHERE false
SELECT sum(i) / 2, sum(i) // 2, sum(i) % 3, sum(i) * 1.5, count(*) / 3, count(*) // 3 FROM t
SELECT CAST(max(tz) AS VARCHAR), strftime(max(ts), '%Y') FROM t
SELECT sum(i) AS total FROM t HAVING count(*) > 100
SELECT count(*) FILTER (WHERE i > 0), sum(big) FILTER (WHERE flag) FROM t
SELECT [count(*), sum(i)], {'n': count(*), 'least': min(s)} FROM t
SELECT n + 1, upper(s) FROM (SELECT count(*) AS n, max(s) AS s FROM t) q ORDER BY 1 LIMIT 1
SELECT (SELECT max(i) FROM t)
SELECT sum(i) FROM t a JOIN (SELECT id AS other FROM t) b ON a.id = b.other
""".strip().splitlines()
MORE_ROWS = """
SELECT flag, count(*) FROM t GROUP BY flag
SELECT i FROM t
SELECT count(*) FROM t UNION ALL SELECT sum(i) FROM t
SELECT count(DISTINCT i) FROM t
""".strip().splitlines()


@pytest.fixture
def engines(connect: Any, all_types: str) -> Any:
    with both(connect, {"t": all_types}, timezone="Asia/Kolkata") as opened:
        yield opened


@pytest.mark.parametrize("sql", ONE_ROW)
def test_the_rest_gives_the_rows_and_types_of_the_local_engine(engines: Any, sql: str) -> None:
    local, spark = engines
    cursor = spark.execute(sql)
    assert cursor._result._open.scans.rest is not None
    assert repr(cursor.fetchall()) == repr(local.execute(sql).fetchall())
    assert spark.execute(sql).arrow().schema == local.execute(sql).arrow().schema
    assert str(cursor.description) == str(local.execute(sql).description)


@pytest.mark.parametrize("sql", MORE_ROWS)
def test_what_gives_more_than_a_row_a_task_stays_with_spark(engines: Any, sql: str) -> None:
    assert engines[1].execute(sql)._result._open.scans.rest is None


def test_errors_are_those_of_the_local_engine(engines: Any) -> None:
    for connection in engines:
        with pytest.raises(icesql.DataError):
            connection.execute("SELECT CAST(sum(big) AS TINYINT) FROM t").fetchall()
