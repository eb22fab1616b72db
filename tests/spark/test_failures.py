"""Failures on Spark raise icesql's errors: what, where, what to do, and no secrets."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import icesql
from icesql.context import QueryContext
from icesql.engine.spark.errors import is_gone, translate
from icesql.engine.spark.progress import SparkJobs
from icesql.engine.spark.scans import TASKS, Scans
from icesql.engine.spark.worker import new_mark
from tests.spark.conftest import NUMBERS
from tests.spark.processes import run
from tests.writer.table import TableWriter

MARK = new_mark()
STATEMENTS = ("SELECT x FROM t WHERE x >= 0", "SELECT sum(x) FROM t WHERE x > 0")


def two_files(folder: Path) -> tuple[str, Path]:
    """Metadata of a table, and one of its two data files."""
    table = TableWriter(folder, NUMBERS)
    for start in (0, 1000):
        table.commit([table.data_file([{"x": start + i, "k": f"k{i}"} for i in range(1000)])])
    return str(table.metadata_path), min(folder.glob("data/*.parquet"))


# Each way of reading with each damage and each statement, and each damage with each statement.
@pytest.mark.parametrize(
    ("ways", "damage", "sql"),
    [
        (way, damage, STATEMENTS[(row + column) % 2])
        for row, way in enumerate(["tasks", "fragments", "reader"])
        for column, damage in enumerate(["footer", "pages", "cut"])
    ],
    indirect=["ways"],
)
def test_a_corrupt_file_is_named(
    spark: Any,
    tmp_path: Path,
    ways: frozenset[str],
    sql: str,
    damage: str,
) -> None:
    metadata, path = two_files(tmp_path)
    data = path.read_bytes()
    path.write_bytes(
        {
            "footer": b"PAR1" + b"\0" * (len(data) - 8) + b"PAR1",
            "pages": data[:4] + b"\xff" * 400 + data[404:],
            "cut": data[: len(data) // 2],
        }[damage]
    )
    spark.register_table("t", metadata)
    with pytest.raises(icesql.CorruptFileError) as caught:
        spark.execute(sql).fetchall()
    assert caught.value.path == str(path)
    assert_plain(str(caught.value))


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_file_that_vanished_is_named(
    spark: Any, tmp_path: Path, ways: frozenset[str], sql: str
) -> None:
    metadata, path = two_files(tmp_path)
    spark.register_table("t", metadata)
    cursor = spark.execute(sql)
    assert set(cursor.scan_groups) == (ways or {TASKS})
    path.unlink()
    with pytest.raises(icesql.StorageError) as caught:
        cursor.fetchall()
    assert caught.value.path == str(path)
    assert_plain(str(caught.value))


@pytest.mark.parametrize("size", [1, None], ids=["one by one", "all"])
def test_rows_after_a_failure_are_refused_not_ended(
    spark: Any, tmp_path: Path, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scans, "ways", frozenset())
    metadata, _ = two_files(tmp_path)
    spark.register_table("t", metadata)
    # The last file is corrupt: rows of the other may be returned before.
    max(tmp_path.glob("data/*.parquet")).write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    cursor = spark.execute("SELECT x FROM t")

    def read_on() -> None:
        while cursor.fetchmany(size or 5000):
            pass

    for _ in range(3):
        with pytest.raises(icesql.CorruptFileError):
            read_on()
    with pytest.raises(icesql.CorruptFileError):
        spark.execute("SELECT x FROM t").arrow()


def assert_plain(text: str) -> None:
    for sign in ("Py4J", "py4j", "o1", "org.apache", "\n", "Traceback", "icesql-"):
        assert sign not in text, text


def test_a_worker_that_lacks_a_package_names_the_setting(spark_here: None) -> None:
    from pyspark.errors import PySparkException

    said = (
        'Job aborted.\nTraceback (most recent call last):\n  File "x.py", line 1, in read\n'
        "ModuleNotFoundError: No module named 'msgspec'\n"
    )
    error = translate(PySparkException(said), MARK, cancelled=False)
    assert type(error) is icesql.OperationalError
    assert_plain(str(error))
    assert "No module named 'msgspec': it is missing" in str(error)
    assert "PYSPARK_PYTHON" in str(error)


JAVA = """An error occurred while calling o1287.getResult.
: org.apache.spark.SparkException: {first}
\tat org.apache.spark.security.SocketAuthServer.getResult(SocketAuthServer.scala:98)
Caused by: {cause}
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
BROADCAST = (
    "org.apache.spark.SparkException: Not enough memory to build and broadcast the table to all "
    "worker nodes. As a workaround, you can either disable broadcast by setting "
    "spark.sql.autoBroadcastJoinThreshold to -1 or increase the spark driver memory by setting "
    "spark.driver.memory to a higher value."
)


@pytest.mark.parametrize(
    ("text", "said", "advice"),
    [
        (
            JAVA.format(first="Exception thrown in awaitResult: ", cause=BROADCAST),
            "Not enough memory to build and broadcast the table",
            "spark.driver.memory before Spark starts",
        ),
        (
            JAVA.format(first="Job aborted.", cause="java.lang.OutOfMemoryError: Java heap space"),
            "OutOfMemoryError: Java heap space",
            "spark.executor.memory on a cluster",
        ),
        (
            "Job aborted due to stage failure: Total size of serialized results of 4 tasks (1104.0 "
            "MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)",
            "Total size of serialized results",
            "raise spark.driver.maxResultSize",
        ),
        (
            JAVA.format(
                first="Job aborted.",
                cause="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            ),
            "Python worker exited unexpectedly",
            "spark.executor.memoryOverhead",
        ),
    ],
)
def test_want_of_memory_says_what_to_do(
    spark_here: None, text: str, said: str, advice: str
) -> None:
    from pyspark.errors import PySparkException

    error = translate(PySparkException(text), MARK, cancelled=False)
    assert type(error) is icesql.OperationalError
    assert str(error).startswith("Spark ran out of memory: ")
    assert said in str(error)
    assert advice in str(error)
    assert "o1287" not in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Job 3 cancelled because SparkContext was shut down", icesql.OperationalError),
        ("Job 3 cancelled part of cancelled job group icesql-1", icesql.QueryCancelledError),
        ("[OPERATION_CANCELED] Operation has been canceled.", icesql.QueryCancelledError),
        ("[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid.", icesql.OperationalError),
    ],
)
def test_an_end_is_told_from_a_cancel(
    spark_here: None, text: str, expected: type[icesql.Error]
) -> None:
    from pyspark.errors import PySparkException

    error = PySparkException(text)
    assert type(translate(error, MARK, cancelled=False)) is expected
    assert is_gone(error) is (expected is icesql.OperationalError)


def test_what_python_says_in_a_worker_is_the_message(spark_here: None) -> None:
    from pyspark.errors import PySparkException

    text = (
        "An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "/somewhere/worker.py", line 1, in main\n'
        "ModuleNotFoundError: No module named 'icesql'\n"
    )
    for condition in (None, "PYTHON_EXCEPTION"):
        error: Any = PySparkException(text)
        error.getCondition = lambda condition=condition: condition
        planning = condition is None
        found = translate(error, MARK, cancelled=False, planning=planning, of_text=not planning)
        assert type(found) is icesql.OperationalError
        assert str(found).startswith("Spark failed: ModuleNotFoundError: No module named 'icesql'")
        assert str(found).endswith("PYSPARK_PYTHON")


def test_a_stage_that_ran_again_may_have_left_files() -> None:
    stages = {1: SimpleNamespace(currentAttemptId=0), 2: None}
    jobs = {7: SimpleNamespace(stageIds=[1, 2]), 8: None}
    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda tag: [*jobs], getJobInfo=jobs.get, getStageInfo=stages.get
    )
    session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    made = SparkJobs(session, QueryContext())
    assert not made.have_retried()
    stages[1] = SimpleNamespace(currentAttemptId=1)
    assert made.have_retried()


DEAD = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    import icesql
    connections = [icesql.connect(engine="spark", master="local[2]") for _ in range(4)]
    def ask(connection):
        try:
            return connection.execute("SELECT sum(x) FROM t WHERE x > 0").fetchall()
        except icesql.OperationalError as error:
            return f"OperationalError {error}"
    for connection in connections:
        connection.register_table("t", sys.argv[1])
    with ThreadPoolExecutor(4) as pool:
        print(*pool.map(ask, connections), sep=" | ")
        from pyspark import SparkContext
        context = SparkContext._active_spark_context
        if sys.argv[2] == "kill":
            context._gateway.proc.kill()
        else:
            context._jsc.sc().stop()
        for _ in range(2):
            print(*pool.map(ask, connections), sep=" | ")
    for connection in connections:
        connection.close()
"""
TOLD = "OperationalError Spark has ended or does not answer"


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_dead_spark_is_told_and_started_again(spark_here: None, tmp_path: Path, way: str) -> None:
    done = run(DEAD, two_files(tmp_path)[0], way)
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    assert len(lines) == 3, done.stderr[-3000:]
    assert lines[0] == lines[2] == ["[(1999000,)]"] * 4, lines
    assert all(each == "[(1999000,)]" or each.startswith(TOLD) for each in lines[1]), lines


STOPPED = """
    import sys, icesql
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.log.level", "OFF").getOrCreate()
    with icesql.connect(engine="spark", spark=session) as connection:
        connection.register_table("t", sys.argv[1])
        print(connection.execute("SELECT sum(x) FROM t WHERE x > 0").fetchall())
        open_one = connection.execute("SELECT x FROM t")
        session.stop()
        for ask in (open_one.fetchall, lambda: connection.execute("SELECT x FROM t").fetchall()):
            try:
                print(ask())
            except icesql.OperationalError as error:
                print("OperationalError", error)
"""


@pytest.mark.cluster
def test_a_session_that_its_user_stopped_is_told(spark_here: None, tmp_path: Path) -> None:
    done = run(STOPPED, two_files(tmp_path)[0], PYSPARK_PYTHON=sys.executable)
    lines = done.stdout.splitlines()
    assert lines[0] == "[(1999000,)]", done.stderr[-3000:]
    assert len(lines) == 3, done.stdout + done.stderr[-3000:]
    assert all(line.startswith("OperationalError") for line in lines[1:])
    assert "the Spark session of this connection has ended" in lines[2]


SECRET = "hush-hush-4711"
SECRETS = """
    import sys
    from msgspec.structs import replace
    import icesql
    from icesql.engine.spark.worker import new_mark
    from icesql.engine.spark.errors import translate
    from icesql.engine.spark.releases import table_of
    from icesql.engine.spark.scans import job_frame
    from icesql.engine.spark.types import spark_schema
    from icesql.engine.spark.worker import ScanJob
    from icesql.scan.tasks import CombinedScanTask
    from icesql.storage.open import Storage
    secret = sys.argv[2]
    with icesql.connect() as local:
        local.register_table("t", sys.argv[1])
        plan = local.execute("SELECT x FROM t")._result._plans[0]
    storage = Storage({"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "AKIA" + secret,
                       "s3.secret-access-key": secret, "s3.session-token": secret})
    context = replace(plan.context, storage=storage)
    file = plan.files[0]
    file = replace(file, data_file=replace(file.data_file, path="s3://bucket/a.parquet"))
    job, task = ScanJob(CombinedScanTask((), context)), CombinedScanTask((file,), context)
    with icesql.connect(engine="spark", master="local[1]") as connection:
        cursor = connection.execute("SELECT 1 + 1 AS x WHERE 1 = 1")
        session = cursor._result._frame.sparkSession
        session.sparkContext.setLogLevel("DEBUG")
        mark = new_mark()
        frame = job_frame(session, job, [task], spark_schema(context.projection), mark)
        frame.explain("extended")
        frame.explain("formatted")
        try:
            table_of(frame)
        except Exception as error:
            print("RAW", error)
            found = translate(error, mark, cancelled=False)
            print("FOUND", type(found).__name__, found, repr(found), vars(found))
        print(repr(job), repr(context), repr(storage))
        print(session.sparkContext.getConf().getAll())
"""


@pytest.mark.cluster
def test_credentials_show_in_no_error_plan_or_log(spark_here: None, tmp_path: Path) -> None:
    done = run(SECRETS, two_files(tmp_path)[0], SECRET)
    assert "FOUND StorageError" in done.stdout, done.stdout[-2000:] + done.stderr[-3000:]
    assert "s3://bucket/a.parquet" in done.stdout
    assert "DEBUG" in done.stderr, "the log was not written, so it proves nothing"
    assert SECRET not in done.stdout
    assert SECRET not in done.stderr


# Seconds of work. A cancelled task of Spark may run its loop to the end.
SLOW = (
    "SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x * c.x = 3 AND c.x < 100 "
    "AND a.x % 2 = b.x % 2 AND b.x % 2 = c.x % 2"
)


def end_of_jobs(tracker: Any, jobs: Iterable[int]) -> list[str]:
    """How each job has ended, once none is running."""
    end = time.monotonic() + 600
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.05)
    assert not tracker.getActiveJobsIds()
    return [tracker.getJobInfo(job).status for job in jobs]


def stopped(cursor: Any, stop: Callable[[], None]) -> tuple[type, list[str]]:
    """The error of a query that is stopped from another thread, and how its jobs end."""
    from pyspark.sql import SparkSession

    tracker = SparkSession.builder.getOrCreate().sparkContext.statusTracker()
    jobs: list[int] = []

    def stop_it() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        time.sleep(0.5)
        while not jobs:
            jobs.extend(tracker.getActiveJobsIds())
        stop()

    thread = threading.Thread(target=stop_it)
    thread.start()
    with pytest.raises(icesql.Error) as raised:
        cursor.fetchall()
    thread.join()
    return raised.type, end_of_jobs(tracker, jobs)


def test_cancel_ends_the_jobs_and_keeps_the_connection(
    spark: Any, tmp_path: Path, ways: frozenset[str]
) -> None:
    spark.register_table("t", two_files(tmp_path)[0])
    cursor = spark.execute(SLOW)
    error, ends = stopped(cursor, cursor.cancel)
    assert issubclass(error, icesql.QueryCancelledError)
    assert "FAILED" in ends
    # The cursor stays cancelled; the connection does not.
    with pytest.raises(icesql.QueryCancelledError):
        cursor.fetchall()
    assert spark.execute("SELECT count(*) FROM t WHERE x < 10").fetchall() == [(10,)]


def test_closing_from_another_thread_ends_a_query(spark: Any, tmp_path: Path) -> None:
    spark.register_table("t", two_files(tmp_path)[0])
    cursor = spark.execute(SLOW)
    assert "FAILED" in stopped(cursor, cursor.close)[1]
    assert spark.execute("SELECT count(*) FROM t WHERE x < 10").fetchall() == [(10,)]


def test_a_time_limit_ends_the_jobs(spark: Any, tmp_path: Path) -> None:
    spark.register_table("t", two_files(tmp_path)[0])
    spark.execute("SET query_timeout = 1")
    with pytest.raises(icesql.QueryCancelledError, match="time limit"):
        spark.execute(SLOW).fetchall()
    spark.execute("RESET query_timeout")
    from pyspark.sql import SparkSession

    tracker = SparkSession.builder.getOrCreate().sparkContext.statusTracker()
    assert set(end_of_jobs(tracker, tracker.getActiveJobsIds())) <= {"FAILED"}
    assert spark.execute("SELECT count(*) FROM t WHERE x < 10").fetchall() == [(10,)]


INTERRUPTED = """
    import os, signal, sys, threading, time
    import icesql
    connection = icesql.connect(engine="spark", master="local[2]")
    connection.register_table("t", sys.argv[1])
    cursor = connection.execute(sys.argv[2])
    from pyspark import SparkContext
    tracker = SparkContext._active_spark_context.statusTracker()
    pressed = []
    def press():
        while not tracker.getActiveJobsIds():
            time.sleep(0.1)
        time.sleep(1)
        while not pressed:
            pressed.extend(tracker.getActiveJobsIds())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press).start()
    try:
        cursor.fetchall()
    except KeyboardInterrupt:
        while tracker.getActiveJobsIds():
            time.sleep(0.05)
        print("FAILED" in [tracker.getJobInfo(job).status for job in pressed])
    print(connection.execute("SELECT count(*) FROM t WHERE x < 10").fetchall())
"""


@pytest.mark.cluster
def test_control_c_ends_the_jobs(spark_here: None, tmp_path: Path) -> None:
    done = run(INTERRUPTED, two_files(tmp_path)[0], SLOW)
    assert done.stdout.splitlines() == ["True", "[(10,)]"], done.stderr[-3000:]


@pytest.mark.parametrize("problem", ["Too many open files", "Permission denied"])
def test_a_file_that_cannot_be_opened_is_not_corrupt(spark_here: None, problem: str) -> None:
    """Texts of Spark's reader, which ignores permissions as root and may lack file descriptors."""
    text = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///w/a.parquet.  "
        "SQLSTATE: KD001\n\tat org.apache.spark.sql.Reader.read(Reader.scala:1)\n"
        f"Caused by: java.io.FileNotFoundException: /w/a.parquet ({problem})\n\t... 1 more"
    )
    error = translate(RuntimeError(text), "mark", cancelled=False)
    assert isinstance(error, icesql.StorageError)
    assert problem in str(error)
    assert "/w/a.parquet" in str(error)
    damaged = RuntimeError(text.replace("FileNotFoundException", "EOFException"))
    wanted = icesql.CorruptFileError if "open" not in problem else icesql.StorageError
    assert isinstance(translate(damaged, "mark", cancelled=False), wanted)
