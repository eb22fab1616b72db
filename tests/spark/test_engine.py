"""The Spark engine from outside: rows, Arrow, errors, cancel, progress, choice."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.context import Progress, QueryContext
from icesql.engine.spark.progress import SparkJobs, Stage
from icesql.engine.spark.scans import SPARK_READER, TASKS
from tests.slt.runner import read_script, run_record
from tests.spark.comparison import both
from tests.spark.conftest import ROWS, is_of_newer_release
from tests.writer.fields import fields
from tests.writer.table import TableWriter

SLT = sorted((Path(__file__).parents[1] / "slt").glob("*.slt"))
FIELDS = fields("x long, k string, d decimal(12, 2)")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """Ten files of a thousand rows; x counts from 0, k has four values and NULL."""
    table = TableWriter(tmp_path_factory.mktemp("numbers"), FIELDS)
    for start in range(0, 10_000, 1_000):
        rows = [
            {"x": x, "k": None if x % 5 == 4 else f"k{x % 5}", "d": None if x % 7 == 0 else x}
            for x in range(start, start + 1_000)
        ]
        table.commit([table.data_file(rows)])
    return table


@pytest.mark.parametrize("path", SLT, ids=lambda path: path.stem)
def test_what_users_see_is_the_same_on_spark(
    path: Path, connect: Any, warehouse: Path, request: pytest.FixtureRequest
) -> None:
    script = read_script(path)
    corpus = request.getfixturevalue("corpus") if script.needs_corpus else None
    wrong = []
    with connect(warehouse=str(warehouse)) as connection:
        for record in script.records:
            try:
                run_record(connection, record, corpus)
            except (AssertionError, icesql.Error) as error:
                refused = isinstance(error, icesql.UnsupportedSqlError)
                if refused and (script.spark_may_refuse or is_of_newer_release(error)):
                    continue
                wrong.append(f"{path.name}:{record.line}\n{record.sql}\n{str(error)[:500]}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


GROUPED = (
    "SELECT k, sum(x), sum(d), avg(x), avg(d), count(*), count(d), min(x), max(k) "
    "FROM t WHERE x % 3 <> 1 GROUP BY k HAVING count(*) > 10 ORDER BY k"
)


def test_every_way_of_reading_gives_the_same_rows(
    connect: Any, numbers: TableWriter, ways: frozenset[str]
) -> None:
    with both(connect, {"t": numbers.metadata_path}) as (local, spark):
        for sql in (GROUPED, "SELECT count(*), sum(x) FROM t WHERE x > 9990 OR k IS NULL"):
            found, expected = spark.execute(sql), local.execute(sql)
            assert set(found._result.groups) == (ways or {TASKS})
            assert found.fetchall() == expected.fetchall()
            assert found.description == expected.description


@pytest.mark.parametrize("target", [20_000, 5_000])
def test_splits_of_files_are_aggregated_once(spark: Any, tmp_path: Path, target: int) -> None:
    table = TableWriter(tmp_path, FIELDS)
    rows = [{"x": x, "k": f"k{x}", "d": 1} for x in range(20_000)]
    table.commit([table.data_file(rows, row_group_size=1_000)])
    spark.register_table("t", table.metadata_path)
    spark.execute(f"SET split_target_size = {target}")
    assert spark.execute("SELECT count(x), sum(x), max(x) FROM t WHERE x >= 0").fetchall() == [
        (20_000, 199_990_000, 19_999)
    ]


def test_deletes_are_honoured_inside_the_tasks(spark: Any, tmp_path: Path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    data = table.data_file([{"x": x, "k": "a", "d": 1} for x in range(100)])
    table.commit([data])
    table.commit([table.position_deletes([(data.record["file_path"], n) for n in range(10)])])
    spark.register_table("t", table.metadata_path)
    assert spark.execute("SELECT k, count(*), min(x) FROM t GROUP BY k").fetchall() == [
        ("a", 90, 10)
    ]


def test_arrow_has_the_declared_schema(connect: Any, all_types: str) -> None:
    with both(connect, {"t": all_types}) as engines:
        tables = [each.execute("SELECT * FROM t ORDER BY id").arrow() for each in engines]
    assert tables[0].schema == tables[1].schema
    assert tables[1].num_rows == len(ROWS)


BYTES = fields("s string, b fixed[4]")


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "brotli"},
        {"use_dictionary": False, "column_encoding": {"b": "BYTE_STREAM_SPLIT"}},
    ],
    ids=["brotli", "byte_stream_split"],
)
def test_what_spark_or_duckdb_cannot_decode_is_read(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    table = TableWriter(tmp_path, BYTES)
    rows = [{"s": f"s{at}", "b": at.to_bytes(4, "big")} for at in range(100)]
    table.commit([table.data_file(rows, **options)])
    spark.register_table("t", table.metadata_path)
    assert spark.execute("SELECT s FROM t ORDER BY s LIMIT 2").fetchall() == [("s0",), ("s1",)]
    assert spark.execute("SELECT count(DISTINCT b), max(s) FROM t").fetchall() == [(100, "s99")]


def test_paths_hold_any_character(spark: Any, tmp_path: Path) -> None:
    for at, name in enumerate(["a b", "p%20q", "x#y", "q?z", "ünï", "a:b=1", "n\nl", "g*[l]{x},"]):
        # The folder of the table, and a folder beside it.
        folder = tmp_path / f"{at}" / name
        table = TableWriter(folder, FIELDS)
        beside = tmp_path / f"beside-{at}" / name / "a.parquet"
        beside.parent.mkdir(parents=True)
        files = [table.data_file([{"x": 1, "k": "a", "d": 1}])]
        files += [table.data_file([{"x": 2, "k": "b", "d": 2}], path=str(beside))]
        table.commit(files)
        spark.register_table("t", table.metadata_path)
        assert spark.execute("SELECT x FROM t ORDER BY x").fetchall() == [(1,), (2,)], name
        assert spark.execute("SELECT k FROM t WHERE x > 1").fetchall() == [("b",)], name
        assert spark.execute("SELECT max(k) FROM t").fetchall() == [("b",)], name


def test_errors_of_the_data_are_data_errors(spark: Any, all_types: str) -> None:
    spark.register_table("t", all_types)
    with pytest.raises(icesql.DataError):
        spark.execute("SELECT CAST(s AS INT) FROM t").fetchall()


def test_progress_counts_tasks_and_bytes(
    spark: Any, numbers: TableWriter, ways: frozenset[str]
) -> None:
    spark.register_table("t", numbers.metadata_path)
    seen: list[Any] = []
    cursor = spark.cursor()
    cursor.progress = seen.append
    cursor.execute("SELECT k, count(*) FROM t GROUP BY k").fetchall()
    told = [each for each in seen if each.stage == "spark"]
    assert told
    for before, after in itertools.pairwise(told):
        assert before.done <= after.done
        assert before.total <= after.total
        assert before.bytes_done <= after.bytes_done
    assert 0 < told[-1].done == told[-1].total
    if ways == {SPARK_READER}:
        # The bytes that Spark's file system counted, including footers.
        files = Path(numbers.metadata_path).parents[1].glob("data/*.parquet")
        assert 0 < told[-1].bytes_done <= sum(path.stat().st_size for path in files)
    else:
        assert told[-1].bytes_done == cursor.scan_reports[0].projected_bytes


def test_nobody_is_asked_for_progress_that_nobody_wants(
    spark: Any, numbers: TableWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkJobs, "_watch", lambda *_: pytest.fail("watched"))
    spark.register_table("t", numbers.metadata_path)
    assert len(spark.execute("SELECT x FROM t WHERE x < 5").fetchall()) == 5


def test_bytes_of_icesqls_own_tasks_grow_with_them() -> None:
    jobs = SparkJobs(None, QueryContext())
    jobs.own_tasks, jobs.own_bytes = 4, 1000
    scan, shuffle, reader = Stage(4, 1), Stage(2, 0), Stage(3, 2, bytes_read=50)
    assert jobs.progress([scan, shuffle]) == Progress("spark", 1, 6, 250)
    assert jobs.progress([Stage(4, 4), Stage(2, 2, shuffled=True)]).bytes_done == 1000
    # A stage with unknown input size adds no bytes to the planned ones.
    assert jobs.progress([Stage(4, 4), Stage(2, 2)]).bytes_done == 1000
    assert jobs.progress([scan, reader], waiting=5) == Progress("spark", 3, 12, 300)


def test_auto_chooses_and_says_why(connect: Any, numbers: TableWriter) -> None:
    with connect(settings={"engine": "auto", "spark_threshold": "1"}) as connection:
        connection.execute("SET engine = 'auto'")
        connection.register_table("t", numbers.metadata_path)
        cursor = connection.execute("SELECT sum(x) FROM t")
        assert cursor.fetchall() == [(49_995_000,)]
        assert any("engine spark" in note for note in cursor._outcome.notes)


def test_the_users_session_keeps_its_settings(spark: Any, all_types: str) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    before = session.conf.get("spark.sql.session.timeZone")
    with icesql.connect(engine="spark", spark=session, timezone="Asia/Kolkata") as connection:
        connection.register_table("t", all_types)
        assert connection.execute("SELECT CAST(max(tz) AS VARCHAR) FROM t").fetchone() == (
            "2026-11-01 11:00:00+05:30",
        )
    assert session.conf.get("spark.sql.session.timeZone") == before
    assert session.range(3).count() == 3


def test_no_view_is_left_behind(spark: Any, numbers: TableWriter) -> None:
    spark.register_table("t", numbers.metadata_path)
    cursor = spark.execute("SELECT x FROM t LIMIT 1")
    session = cursor._result._open.scans._session
    cursor.fetchall()
    cursor.close()
    end = time.monotonic() + 600
    while time.monotonic() < end and any(
        each.name.startswith("__scan") for each in session.catalog.listTables()
    ):
        time.sleep(0.1)
    assert not [each.name for each in session.catalog.listTables() if "__" in each.name]


def test_missing_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from icesql.engine.spark.start_up import require_java

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(icesql.MissingExtraError, match="Java 17"):
        require_java()


def test_missing_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from icesql.engine.spark.start_up import require_pyspark

    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(icesql.MissingExtraError, match=r"\.\[spark\]"):
        require_pyspark()
