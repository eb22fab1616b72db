"""Features that older releases of PySpark lack, tested with any installed release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.engine.spark import reader, releases
from icesql.engine.spark.scans import SPARK_READER, TASKS, Scans
from icesql.engine.spark.sql import functions, numbers
from tests.spark.comparison import both, same
from tests.spark.conftest import SOURCES, has_release

AGGREGATED = """
SELECT string_agg(s, '-' ORDER BY s DESC, id), string_agg(s, ',' ORDER BY id) FROM t
SELECT flag, string_agg(s, '' ORDER BY id) FROM t GROUP BY flag ORDER BY flag
SELECT string_agg(s, ',') FROM t WHERE id = 3
SELECT string_agg(s, ',' ORDER BY i) FROM t WHERE id > 100
""".strip().splitlines()


def test_string_agg_without_listagg_gives_the_local_rows(
    connect: Any, all_types: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "has_listagg", lambda: False)
    with both(connect, {"t": all_types}) as (local, spark):
        for sql in AGGREGATED:
            assert spark.execute(sql).fetchall() == local.execute(sql).fetchall(), sql


def test_corr_without_a_division_by_zero_gives_the_local_values(
    connect: Any, all_types: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "is_corr_total", lambda: False)
    with both(connect, {"t": all_types}) as (local, spark):
        for where in ("id IN (1, 4, 6)", "true", "id = 1", "false"):
            sql = (
                "SELECT corr(i, i), corr(i, 1), corr(i, dec), corr(dec, big + 0.5) "
                f"FROM t WHERE {where}"
            )
            assert same(spark.execute(sql).fetchall(), local.execute(sql).fetchall()), sql


class Session:
    """A session of Spark Connect with settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = self
        self._settings = settings

    def get(self, name: str, default: Any) -> Any:
        return self._settings.get(name, default)

    def newSession(self) -> str:
        return "new"

    def cloneSession(self) -> str:
        return "clone"


def test_a_session_that_was_sent_an_environment_is_cloned(
    spark_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "_release", lambda: (4, 1))
    assert releases.session_beside(Session()) == "new"
    sent: Any = {"spark.sql.execution.pyspark.python": "environment/bin/python"}
    assert releases.session_beside(Session(**sent)) == "clone"


@pytest.mark.parametrize(
    ("release", "sql", "named"),
    [
        (
            (4, 0),
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) "
            "SELECT * FROM n",
            r"WITH RECURSIVE on Spark.* it needs PySpark 4\.1 or newer",
        ),
        ((3, 5), "SELECT string_agg(DISTINCT s, ',') FROM t", r"string_agg.* needs PySpark 4\.0"),
        (
            (4, 1),
            "SELECT sum(i) FILTER (WHERE i > 0) OVER (ORDER BY id) FROM t",
            r"FILTER of a window .* needs PySpark 4\.2",
        ),
    ],
)
def test_what_a_release_lacks_is_refused_by_its_name(
    spark: Any,
    all_types: str,
    monkeypatch: pytest.MonkeyPatch,
    release: tuple[int, int],
    sql: str,
    named: str,
) -> None:
    spark.register_table("t", all_types)
    spark.execute("SELECT 1").fetchall()
    monkeypatch.setattr(releases, "_release", lambda: release)
    with pytest.raises(icesql.UnsupportedSqlError, match=named):
        spark.execute(sql)


@pytest.mark.parametrize(
    ("table", "way"), [("numbers", SPARK_READER), ("evolved", TASKS), ("t", TASKS)]
)
def test_a_reader_that_widens_nothing_is_given_no_narrower_column(
    connect: Any,
    cluster_tables: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    way: str,
) -> None:
    monkeypatch.setattr(reader, "reads_widened_columns", lambda: False)
    monkeypatch.setattr(Scans, "ways", frozenset({SPARK_READER}))
    with both(connect, cluster_tables) as (local, spark):
        sql = f"SELECT * FROM {table} ORDER BY 1"
        cursor = spark.execute(sql)
        assert {*cursor.scan_groups} == {way}
        assert same(cursor.fetchall(), local.execute(sql).fetchall())


@pytest.mark.skipif(not has_release(4, 0), reason=SOURCES)
def test_a_session_registers_while_another_that_has_the_source_is_active(
    session: Any, cluster_tables: dict[str, str], tmp_path: Path
) -> None:
    second, elsewhere = session.newSession(), session.newSession()
    sessions = session.sparkContext._jvm.SparkSession
    sessions.setActiveSession(session._jsparkSession)
    icesql.register_spark(second)
    icesql.register_spark(elsewhere, warehouse=tmp_path)
    assert sessions.getActiveSession().get().equals(session._jsparkSession)
    path = str(Path(cluster_tables["numbers"]).parents[1])
    counts = [each.read.format("icesql").load(path).count() for each in (session, second)]
    assert counts[0] == counts[1] > 0
