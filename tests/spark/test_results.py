"""Results of the Spark engine as streams: bounded, in order, each row once, ended by close."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.context import QueryContext
from icesql.engine.spark import batches, progress
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.scans import Scans
from tests.spark.conftest import needs

FILES, ROWS = 16, 50


@pytest.fixture
def tasks(spark: Any, sixteen: str, monkeypatch: pytest.MonkeyPatch) -> icesql.Connection:
    """A connection where each file is a task, and every wave counts as a big one."""
    monkeypatch.setattr(Scans, "ways", frozenset())
    monkeypatch.setattr(batches, "WAVE_BYTES", 1)
    spark.register_table("t", sixteen)
    spark.execute("SET split_target_size = 1")
    return spark  # type: ignore[no-any-return]


def session_of(connection: icesql.Connection) -> Any:
    """The Spark session in which a connection's queries run."""
    cursor = connection.execute("SELECT 1 + 1 AS x WHERE 1 = 1")
    return cursor._result._frame.sparkSession  # type: ignore[union-attr]


def mapped(frame: Any, function: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> Any:
    with warnings.catch_warnings():
        # PySpark warns about some installed versions of pandas.
        warnings.simplefilter("ignore")
        return frame.mapInArrow(function, schema)


def tasks_done(cursor: Any) -> int:
    jobs = cursor._result._open.jobs
    tracker = jobs._session.sparkContext.statusTracker()
    done = 0
    for job in tracker.getJobIdsForGroup(jobs.tag):
        for stage in tracker.getJobInfo(job).stageIds:
            info = tracker.getStageInfo(stage)
            done += info.numCompletedTasks if info is not None else 0
    return done


def settled(probe: Callable[[], Any], seconds: float = 600) -> bool:
    end = time.monotonic() + seconds
    while not (found := bool(probe())) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_the_first_row_comes_before_most_tasks_ran(tasks: icesql.Connection) -> None:
    cursor = tasks.execute("SELECT x FROM t")
    first = cursor.fetchone()
    time.sleep(1)
    assert 0 < tasks_done(cursor) <= 5
    rest = cursor.fetchall()
    assert sorted([first, *rest]) == [(x,) for x in range(FILES * ROWS)]


def test_a_reader_that_waits_holds_up_nobody_else(tasks: icesql.Connection) -> None:
    cursor = tasks.execute("SELECT x FROM t")
    cursor.fetchone()
    assert tasks.execute("SELECT count(k), sum(x) FROM t").fetchall() == [(800, 319600)]
    assert len(cursor.fetchall()) == FILES * ROWS - 1


def test_arrow_batches_stream_too(tasks: icesql.Connection) -> None:
    cursor = tasks.execute("SELECT x, k FROM t")
    reader = cursor.arrow_reader()
    first = reader.read_next_batch()
    assert tasks_done(cursor) <= 5
    assert first.num_rows + sum(batch.num_rows for batch in reader) == FILES * ROWS


def test_closing_early_ends_the_jobs(tasks: icesql.Connection) -> None:
    cursor = tasks.execute("SELECT x FROM t")
    cursor.fetchone()
    jobs = cursor._result._open.jobs  # type: ignore[union-attr]
    tracker = jobs._session.sparkContext.statusTracker()
    cursor.close()

    def begun() -> int:
        return len(tracker.getJobIdsForGroup(jobs.tag))

    def quiet() -> bool:
        # Spark reports its jobs with a delay, and closing does not wait for them.
        before = begun()
        time.sleep(0.5)
        return begun() == before and not tracker.getActiveJobsIds()

    assert settled(quiet)
    assert begun() <= 5
    assert not [each.name for each in threading.enumerate() if each.name == "icesql-wave"]


def test_progress_counts_the_waves_to_come(tasks: icesql.Connection) -> None:
    seen: list[Any] = []
    cursor = tasks.cursor()
    cursor.progress = seen.append
    cursor.execute("SELECT x FROM t").fetchone()
    # A wave that has just begun may not be counted yet.
    assert settled(lambda: any(each.done < each.total == FILES for each in list(seen)))
    assert len(cursor.fetchall()) == FILES * ROWS - 1
    assert (seen[-1].done, seen[-1].total) == (FILES, FILES)


def test_progress_ends_whole_where_spark_counts_late(
    tasks: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = progress._StageCounter.stages
    monkeypatch.setattr(progress, "_SETTLE_SECONDS", 0)
    monkeypatch.setattr(
        progress._StageCounter,
        "stages",
        lambda self: [replace(each, done=0) for each in counted(self)],
    )
    seen: list[Any] = []
    cursor = tasks.cursor()
    cursor.progress = seen.append
    assert len(cursor.execute("SELECT x FROM t").fetchall()) == FILES * ROWS
    assert (seen[-1].done, seen[-1].total) == (FILES, FILES)


def test_order_by_keeps_its_order_over_many_waves(tasks: icesql.Connection) -> None:
    session = session_of(tasks)
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "12")
    try:
        cursor = tasks.execute("SELECT x FROM t ORDER BY k DESC, x")
        rows = cursor.fetchall()
        jobs = cursor._result._open.jobs  # type: ignore[union-attr]
        tracker = session.sparkContext.statusTracker()
        assert len(tracker.getJobIdsForGroup(jobs.tag)) > 4
    finally:
        session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "true")
        session.conf.set("spark.sql.shuffle.partitions", "2")
    assert rows == [
        (n * ROWS + i,) for k in (2, 1, 0) for n in range(FILES) for i in range(ROWS) if i % 3 == k
    ]


def test_no_wave_runs_a_shuffle_again(spark: Any, tmp_path: Path) -> None:
    session = session_of(spark)
    seen = tmp_path / "seen"
    seen.mkdir()

    def marked(given: Iterator[Any]) -> Iterator[Any]:
        import uuid

        for batch in given:
            (seen / uuid.uuid4().hex).write_text(str(batch.num_rows))
            yield batch

    read = mapped(session.range(0, 1000, 1, 4), marked, "id long")
    frame = read.repartition(16, "id").distinct()
    jobs = SparkJobs(session, QueryContext())
    with closing(batches.stream(frame, jobs, None)) as stream:
        ids = [value for batch in stream for value in batch.column(0).to_pylist()]
    assert sorted(ids) == list(range(1000))
    assert sum(int(each.read_text()) for each in seen.iterdir()) == 1000
    assert len(session.sparkContext.statusTracker().getJobIdsForGroup(jobs.tag)) > 4


def test_a_wave_too_big_for_the_driver_is_halved(
    tasks: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "WAVE_BYTES", 1 << 30)
    from py4j.protocol import Py4JError

    run, sizes = batches.Waves._run, list[int]()

    def refusing(self: batches.Waves, partitions: range) -> Any:
        sizes.append(len(partitions))
        if len(partitions) > 3:
            raise Py4JError("results are bigger than spark.driver.maxResultSize")
        return run(self, partitions)

    monkeypatch.setattr(batches.Waves, "_run", refusing)
    rows = tasks.execute("SELECT x FROM t").fetchall()
    assert rows == [(x,) for x in range(FILES * ROWS)]
    assert max(sizes) == FILES


def test_without_the_private_methods_the_rows_are_the_same(
    tasks: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(session: Any) -> Any:
        raise AttributeError("this PySpark has no such method")

    monkeypatch.setattr(batches._Jvm, "of", missing)
    assert tasks.execute("SELECT x FROM t").fetchall() == [(x,) for x in range(FILES * ROWS)]


@needs("4.0", why="the modules that these methods are in")
def test_the_private_methods_of_pyspark_4_1_give_the_same_rows(
    tasks: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark.sql.pandas.types
    import pyspark.util

    schema = pyspark.sql.pandas.types.to_arrow_schema
    connect = pyspark.util._create_local_socket

    def older_schema(of: Any, timestamp_utc: bool = True, **of_pyspark: Any) -> Any:
        known = signature(schema).parameters
        return schema(of, **({"timezone": "UTC"} if "timezone" in known else {}) | of_pyspark)

    def older_socket(info: Any) -> Any:
        made = connect(info)
        return made[0] if isinstance(made, tuple) else made

    monkeypatch.setattr(pyspark.sql.pandas.types, "to_arrow_schema", older_schema)
    monkeypatch.setattr(pyspark.util, "_create_local_socket", older_socket)
    assert tasks.execute("SELECT x FROM t").fetchall() == [(x,) for x in range(FILES * ROWS)]


def test_rows_lost_on_the_way_are_an_error(
    tasks: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    message, calls = batches._Wave._message, list[int]()

    def cut(self: batches._Wave) -> bytes | None:
        calls.append(1)
        if len(calls) > 3:
            self._file = open("/dev/null", "rb")  # noqa: SIM115 - closed by the wave
            self._file.read = lambda count: b"\0\0"  # type: ignore[method-assign]
        return message(self)

    monkeypatch.setattr(batches._Wave, "_message", cut)
    with pytest.raises(icesql.OperationalError):
        tasks.execute("SELECT x FROM t").fetchall()


def test_settings_of_the_session_reach_the_tasks(connect: Any) -> None:
    def seen(given: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        for batch in given:
            zone = TaskContext.get().getLocalProperty("spark.sql.session.timeZone")
            yield pa.record_batch({"zone": pa.array([zone] * batch.num_rows, pa.string())})

    with connect(timezone="Asia/Kolkata") as connection:
        session = session_of(connection)
        frame = mapped(session.range(0, 12, 1, 12), seen, "zone string")
        jobs = SparkJobs(session, QueryContext())
        # The zones in the first thread and in those that run later waves.
        with closing(batches.stream(frame, jobs, None)) as stream:
            zones = [zone for batch in stream for zone in batch.column(0).to_pylist()]
    assert zones == ["Asia/Kolkata"] * 12
