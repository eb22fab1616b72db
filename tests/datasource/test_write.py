"""``df.write`` and ``df.writeStream`` of ``format("icesql")``: rows, commits, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql.datasource import write
from icesql.datasource.read import ReadError
from icesql.engine.spark.worker import pack
from tests.spark.conftest import needs

pytestmark = needs("4.0", why="Python data sources")


class Lake:
    """A warehouse, a local connection to it, and a session of Spark that writes to it."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.local = icesql.connect(warehouse=folder)
        self.local.execute("CREATE SCHEMA s")
        icesql.register_spark(self.session, warehouse=folder)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self.local.execute(text)
        return [] if cursor.description is None else cursor.fetchall()

    def write(self, query: str, table: str, mode: str = "append", **options: Any) -> None:
        frame = query if not isinstance(query, str) else self.session.sql(query)
        named = {name.replace("_", "-"): str(value) for name, value in options.items()}
        frame.write.format("icesql").mode(mode).options(**named).save(f"s.{table}")

    def left(self, table: str) -> set[str]:
        """Names of data files that no snapshot has."""
        used = {
            row[0].rpartition("/")[2]
            for row in self.sql(f"SELECT file_path FROM s.{table}.all_files")
        }
        return {
            each.name for each in self.folder.rglob("*.parquet") if f"/{table}/" in str(each)
        } - used


@pytest.fixture(scope="module")
def lake(connect: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with connect() as con:
        con.execute("SELECT 1").fetchall()
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    made = Lake(session, tmp_path_factory.mktemp("lake"))
    yield made
    made.local.close()
    session.sparkContext._jvm.SparkSession.clearActiveSession()


def test_rows_are_appended_by_the_names_of_their_columns(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE s.a (x BIGINT, k VARCHAR DEFAULT 'own') TBLPROPERTIES ('format-version' = 3)"
    )
    lake.write("SELECT CONCAT('k', id) AS K, id AS x FROM range(0, 5, 1, 3)", "a")
    lake.write("SELECT 5 AS x", "a", **{"snapshot-property.job": "nightly"})
    assert lake.sql("SELECT * FROM s.a ORDER BY x") == [
        *((x, f"k{x}") for x in range(5)),
        (5, "own"),
    ]
    (summary,) = lake.sql("SELECT summary FROM s.a.snapshots ORDER BY committed_at DESC LIMIT 1")[0]
    assert dict(summary)["job"] == "nightly"


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_overwriting_replaces_all_rows_or_those_of_the_partitions(lake: Lake, version: str) -> None:
    name = f"o{version}"
    lake.sql(
        f"CREATE TABLE s.{name} (p INT, x BIGINT) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    lake.sql(f"ALTER TABLE s.{name} WRITE ORDERED BY x DESC")
    lake.write("SELECT CAST(id % 3 AS INT) AS p, id AS x FROM range(6)", name)
    lake.write("SELECT 1 AS p, 70L AS x", name, "overwrite", overwrite_mode="dynamic")
    rows = lake.sql(f"SELECT * FROM s.{name} ORDER BY ALL")
    assert rows == [(0, 0), (0, 3), (1, 70), (2, 2), (2, 5)]
    assert lake.sql(f"SELECT DISTINCT sort_order_id FROM s.{name}.files") == [(1,)]
    lake.write("SELECT 1 AS p, 71L AS x", name, "overwrite")
    assert lake.sql(f"SELECT * FROM s.{name}") == [(1, 71)]
    lake.write("SELECT 1 AS p, 71L AS x WHERE false", name, "overwrite", overwrite_mode="dynamic")
    assert lake.sql(f"SELECT * FROM s.{name}") == [(1, 71)]
    lake.write("SELECT 1 AS p, 71L AS x WHERE false", name, "overwrite")
    assert lake.sql(f"SELECT * FROM s.{name}") == []
    assert not lake.left(name)


def test_columns_come_with_the_rows_if_they_may(lake: Lake) -> None:
    lake.sql("CREATE TABLE s.e (x INT)")
    with pytest.raises(Exception, match="ColumnNotFoundError"):
        lake.write("SELECT 1 AS x, 'n' AS n", "e")
    lake.write("SELECT 3000000000 AS x, named_struct('a', 1) AS n", "e", mergeSchema=True)
    assert lake.sql("SELECT x, n.a FROM s.e") == [(3_000_000_000, 1)]


def test_a_branch_and_a_staged_snapshot(lake: Lake) -> None:
    lake.sql("CREATE TABLE s.b (x INT)")
    lake.write("SELECT 1 AS x", "b")
    with pytest.raises(Exception, match="SnapshotNotFoundError"):
        lake.write("SELECT 2 AS x", "b", branch="audit")
    lake.sql("ALTER TABLE s.b CREATE BRANCH audit")
    lake.write("SELECT 2 AS x", "b", branch="audit")
    with pytest.raises(Exception, match=r"write\.wap\.enabled"):
        lake.write("SELECT 3 AS x", "b", wap_id="w")
    lake.sql("ALTER TABLE s.b SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    lake.write("SELECT 3 AS x", "b", wap_id="w")
    assert lake.sql("SELECT * FROM s.b") == [(1,)]
    assert lake.sql("SELECT * FROM s.b VERSION AS OF 'audit' ORDER BY x") == [(1,), (2,)]
    lake.sql("CALL system.publish_changes('s.b', 'w')")
    assert lake.sql("SELECT * FROM s.b ORDER BY x") == [(1,), (3,)]


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("append", {"overwrite-mode": "dynamic"}, "overwrite-mode"),
        ("append", {"secret-key": "hush-4711"}, "has no option"),
        ("append", {"txn-app-id": "a"}, "for writeStream, not for write"),
        ("append", {"branch": "a", "wap-id": "b"}, "only one of"),
        ("errorifexists", {}, "Please use either the .Append. or"),
        ("ignore", {}, "Please use either the .Append. or"),
    ],
)
def test_what_is_refused(lake: Lake, mode: str, options: dict[str, str], said: str) -> None:
    lake.sql("CREATE TABLE IF NOT EXISTS s.r (x INT)")
    with pytest.raises(Exception, match=f"(?i){said}") as raised:
        lake.write("SELECT 1 AS x", "r", mode, **options)
    assert "hush-4711" not in str(raised.value)
    assert not lake.left("r")


def test_a_value_that_does_not_fit_leaves_the_table_and_no_file(lake: Lake) -> None:
    lake.sql("CREATE TABLE s.f (x INT NOT NULL)")
    for query, said in (
        ("SELECT id * 1000000000 AS x FROM range(0, 9, 1, 3)", "does not fit"),
        ("SELECT CAST(nullif(id, 8) AS INT) AS x FROM range(0, 9, 1, 3)", "NULL in required"),
    ):
        with pytest.raises(Exception, match=said):
            lake.write(query, "f")
    assert lake.sql("SELECT count(*) FROM s.f") == [(0,)]
    assert not lake.left("f")


TABLES = count()
TYPES = """i INT, s STRUCT<a: BIGINT, l: ARRAY<TIMESTAMP>>, m MAP<STRING, DECIMAL(9,2)>, u UUID,
    t TIMESTAMP, z TIMESTAMPTZ, n TIMESTAMP_NS, b BLOB, d DATE, c TIME"""
VALUES = """1, {'a': 7, 'l': [TIMESTAMP '2024-05-06 07:08:09', NULL]}, MAP {'k': 1.25},
    'f0000000-0000-4000-8000-00000000000f', '2024-05-06 07:08:09.5', '2024-05-06 07:08:09+02',
    '2024-05-06 07:08:09.123456789'::TIMESTAMP_NS, 'ab'::BLOB, DATE '1815-06-18', TIME '01:02:03'"""


@pytest.mark.parametrize(
    ("zone", "layout"), [("UTC", "PARTITIONED BY (bucket(4, u))"), ("Asia/Kolkata", "")]
)
def test_all_types_come_back(lake: Lake, zone: str, layout: str) -> None:
    """What ``read`` gives of a table ``write`` takes, and Spark's own where it has the type."""
    number = next(TABLES)
    for name in ("t", "copy"):
        lake.sql(
            f"CREATE TABLE s.{name}{number} ({TYPES}) {layout} TBLPROPERTIES ('format-version' = '3')"
        )
    one, other = f"t{number}", f"copy{number}"
    lake.sql(f"INSERT INTO s.{one} VALUES ({VALUES}), (2{', NULL' * 9})")
    lake.session.conf.set("spark.sql.session.timeZone", zone)
    try:
        lake.write(lake.session.read.format("icesql").load(f"s.{one}"), other)
        assert not lake.sql(
            f"(FROM s.{one} EXCEPT FROM s.{other}) UNION ALL (FROM s.{other} EXCEPT FROM s.{one})"
        )
        # Zones: the session's, as in Spark.
        lake.write(
            "SELECT 3 AS i, TIMESTAMP '2024-01-01 00:00:00' AS t, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS z",
            other,
        )
        (row,) = lake.sql(f"SELECT t::VARCHAR, epoch(z) FROM s.{other} WHERE i = 3")
        assert row[0] == "2024-01-01 00:00:00"
        assert row[1] == 1_704_067_200 - (0 if zone == "UTC" else 19_800)
    finally:
        lake.session.conf.unset("spark.sql.session.timeZone")


# ------------------------------------------------------------------ what is left


def planned(lake: Lake, table: str, **options: Any) -> Any:
    """A write of the source, in this process, whose tasks may be run as often as Spark might."""
    from pyspark.sql.types import LongType, StructField, StructType

    from icesql.datasource.source import _data_source, _facts

    made = _data_source(lambda: None, {"warehouse": str(lake.folder)}, pack(_facts(lake.session)))
    source = made({"path": f"s.{table}", **options})
    schema = StructType([StructField("x", LongType())])
    return source.streamWriter(schema, False) if options else source.writer(schema, False)


def rows(*numbers: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"x": pa.array(numbers, pa.int64())})])


@pytest.fixture
def table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> str:
    attempts = count()
    monkeypatch.setattr(write, "task_numbers", lambda: (0, next(attempts)))
    name = f"w{next(TABLES)}"
    lake.sql(f"CREATE TABLE s.{name} (x BIGINT)")
    return name


def test_a_job_that_fails_leaves_nothing_also_of_lost_tasks(lake: Lake, table: str) -> None:
    writer = planned(lake, table)
    told = writer.write(rows(1))
    writer.write(rows(2))  # nobody heard of it
    assert len(lake.left(table)) == 2
    writer.abort([told, None])
    assert not lake.left(table)
    writer = planned(lake, table)
    writer.write(rows(1))
    writer.abort([None, None])
    assert not lake.left(table)


def test_a_task_that_ran_twice_writes_once(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = planned(lake, table)
    writer.write(rows(1))
    monkeypatch.setattr(write, "is_repeated", lambda: True)
    writer.commit([writer.write(rows(1))])
    assert lake.sql(f"SELECT * FROM s.{table}") == [(1,)]
    assert not lake.left(table)


def test_an_abort_after_a_commit_that_was_applied_removes_nothing(lake: Lake, table: str) -> None:
    """Spark aborts whenever it does not hear of the end of a commit."""
    writer = planned(lake, table)
    told = [writer.write(rows(1)), writer.write(rows(2))]
    writer.commit(told)
    writer.abort(told)
    assert lake.sql(f"SELECT * FROM s.{table} ORDER BY x") == [(1,), (2,)]


def test_a_table_that_changed_meanwhile_is_a_conflict_and_nothing_is_left(
    lake: Lake, table: str
) -> None:
    writer = planned(lake, table)
    told = [writer.write(rows(1))]
    lake.sql(f"ALTER TABLE s.{table} ADD COLUMN y INT")
    lake.sql(f"INSERT INTO s.{table} VALUES (0, 0)")
    writer.commit(told)  # a column more is no matter
    assert lake.sql(f"SELECT * FROM s.{table} ORDER BY x") == [(0, 0), (1, None)]
    writer = planned(lake, table)
    told = [writer.write(rows(1))]
    lake.sql(f"CREATE OR REPLACE TABLE s.{table} (x VARCHAR)")
    with pytest.raises(ReadError) as raised:
        writer.commit(told)
    assert isinstance(raised.value.error, icesql.CommitConflictError)
    writer.abort(told)
    assert not lake.left(table)


# ------------------------------------------------------------------ streams

STREAMS = needs("4.1", why="writers of streams that take Arrow")


@STREAMS
def test_a_batch_comes_once_whoever_brings_it_again(lake: Lake, table: str) -> None:
    for batch in (0, 1, 1, 0):
        writer = planned(lake, table, **{"txn-app-id": "app"})
        again = planned(lake, table, **{"txn-app-id": "app"})
        again.commit([writer.write(rows(batch))], batch)  # Spark plans anew to commit
    other = planned(lake, table, **{"txn-app-id": "other"})
    other.commit([other.write(rows(9))], 0)
    assert lake.sql(f"SELECT * FROM s.{table} ORDER BY x") == [(0,), (1,), (9,)]
    assert not lake.left(table)


@STREAMS
@pytest.mark.parametrize("epoch", [{}, {write._EPOCH: "seven"}, {write._EPOCH: "9" * 5000}])
def test_a_batch_after_one_of_unknown_number_is_refused(
    lake: Lake, table: str, epoch: dict[str, str]
) -> None:
    writer = planned(lake, table)
    plan = write.unpack(writer._plan)
    options = write.replace(plan.options, properties={write._APP: "app", **epoch})
    written = writer.write(rows(1)).report
    write.commit_rows(pack(write.replace(plan, options=options)), [written])
    again = planned(lake, table, **{"txn-app-id": "app"})
    with pytest.raises(ReadError) as refused:
        again.commit([again.write(rows(2))], 3)
    assert "no number of a batch" in str(refused.value.error)
    assert lake.sql(f"SELECT x FROM s.{table}") == [(1,)]
    assert not lake.left(table)


@STREAMS
def test_a_stream_delivers_each_row_once(lake: Lake, table: str, tmp_path: Path) -> None:
    source = str(tmp_path / "in")

    def run(checkpoint: str, **options: str) -> None:
        frame = lake.session.readStream.schema("x BIGINT").parquet(source)
        writer = frame.writeStream.format("icesql").options(**options)
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        query.trigger(availableNow=True).start(f"s.{table}").awaitTermination()

    app = {"txn-app-id": f"app-{table}"}
    for turn in range(3):
        lake.session.range(turn * 10, turn * 10 + 10).toDF("x").write.mode("append").parquet(source)
        run("one", **app)
        # Killed between the commit of the table and that of the checkpoint.
        for done in (tmp_path / "one" / "commits").glob(f"*{turn}*"):
            done.unlink()
        run("one", **app)
    assert lake.sql(f"SELECT count(*), count(DISTINCT x) FROM s.{table}") == [(30, 30)]
    with pytest.raises(Exception, match="another checkpoint"):
        run("two", **app)
    with pytest.raises(Exception, match="needs option"):
        run("three")
    assert lake.sql(f"SELECT count(*) FROM s.{table}") == [(30,)]
    assert not lake.left(table)
