"""A real cluster, one master and two workers in separate processes: it runs the core of the
suite, and tasks that are killed in the middle are repeated, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import QUICK_JVM, SOURCES, needs
from tests.spark.processes import Cluster, Driver, is_alive, members, running, until

pytestmark = pytest.mark.cluster

ROWS = "SELECT x, k FROM numbers"
GROUPED = "SELECT k, count(*), sum(x), avg(x), count(DISTINCT x) FROM numbers GROUP BY k"
PARTIAL = "SELECT k, count(*), sum(x), avg(x), min(x), max(x) FROM numbers GROUP BY k"
EACH = "SELECT x, min(k), count(*) FROM numbers GROUP BY x"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, spark_here: None) -> Iterator[Cluster]:
    with running(Cluster(tmp_path_factory.mktemp("cluster"))) as made:
        yield made


@pytest.fixture(scope="module")
def driver(cluster: Cluster, cluster_tables: dict[str, str]) -> Driver:
    """A driver on the cluster, with the tables registered."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.shuffle.io.retryWait": "200ms",
        "spark.ui.liveUpdate.period": "0",
    }
    arguments = [f'--driver-java-options "{QUICK_JVM}"']
    arguments += [f'--conf "{name}={value}"' for name, value in settings.items()]
    made = Driver(
        cluster,
        "master",
        cluster.address,
        PYSPARK_SUBMIT_ARGS=" ".join([*arguments, "pyspark-shell"]),
    )
    made.ask("tables", cluster_tables)
    return made


@pytest.fixture
def whole(cluster: Cluster, driver: Driver) -> Cluster:
    """The cluster with two workers and an executor on each, after any kills."""
    while len(cluster.workers) < 2:
        cluster.add_worker()
    until(lambda: driver.ask("executors") == 2, "two executors")
    return cluster


def test_the_core_gives_the_local_rows_on_a_cluster(
    whole: Cluster, driver: Driver, warehouse: Path
) -> None:
    assert driver.ask("core", {"types": True}) == []
    assert driver.ask("scripts", str(warehouse)) == []


def test_a_corrupt_file_is_the_icesql_error_on_a_cluster(
    whole: Cluster, driver: Driver, corrupt: Path
) -> None:
    driver.ask("tables", {"corrupt": str(corrupt.parents[1])})
    kind, text = driver.ask("error", "SELECT x FROM corrupt")
    assert kind == "CorruptFileError"
    assert str(corrupt) in text


def halt(cluster: Cluster, driver: Driver, way: str, sql: str) -> dict[str, int]:
    """The task of a query that is halted in the middle, and that Spark reports as running."""
    cluster.arm()
    driver.ask("start", way, sql)
    halted = cluster.halted(driver)
    assert is_alive(halted["pid"])
    assert halted["pid"] in members(halted["session"])
    # Spark reports tasks with a delay; the halted one stays until it is killed.
    until(lambda: driver.ask("running_tasks"), "Spark knows of no running task")
    return halted


def assert_done_once(
    cluster: Cluster, driver: Driver, halted: dict[str, int], elsewhere: bool
) -> None:
    """The query returned the right rows, and the killed task was repeated to its end, once."""
    outcome = driver.ask("finish")
    assert outcome.get("same"), outcome
    assert outcome["count"] == outcome["expected"] == outcome["distinct"]
    runs: dict[int, list[Any]] = {}
    for told in cluster.told():
        if (told["stage"], told["partition"]) == (halted["stage"], halted["partition"]):
            runs.setdefault(told["attempt"], []).append(told)
    killed, *again = (runs[attempt] for attempt in sorted(runs))
    assert {told["pid"] for told in killed} == {halted["pid"]}
    begun, gave = (told["what"] for told in killed)
    assert begun == "begin"
    assert gave.startswith("gave")
    assert [told["what"] for run in again for told in run].count("end") == 1
    if elsewhere:
        assert halted["session"] not in {told["session"] for run in again for told in run}


@pytest.mark.parametrize(
    ("way", "sql"),
    [
        pytest.param("tasks", ROWS, id="rows of tasks"),
        pytest.param("partial", EACH, id="partial results of each row"),
        pytest.param("format", ROWS, id="format", marks=needs("4.0", why=SOURCES)),
        pytest.param("write", ROWS, id="files of a table"),
    ],
)
def test_a_worker_killed_in_the_middle_of_a_task_loses_and_doubles_nothing(
    whole: Cluster, driver: Driver, way: str, sql: str
) -> None:
    halted = halt(whole, driver, way, sql)
    whole.kill_worker(halted["session"])
    assert not is_alive(halted["pid"])
    assert_done_once(whole, driver, halted, elsewhere=True)


@pytest.mark.parametrize(
    ("way", "sql"),
    [
        pytest.param("tasks", GROUPED, id="rows of tasks, grouped by Spark"),
        pytest.param("partial", PARTIAL, id="partial results"),
        pytest.param(
            "format",
            GROUPED,
            id="format, grouped by Spark",
            marks=needs("4.0", why=SOURCES),
        ),
        pytest.param("write", ROWS, id="files of a table"),
    ],
)
def test_a_python_process_killed_in_the_middle_of_a_task_loses_and_doubles_nothing(
    whole: Cluster, driver: Driver, way: str, sql: str
) -> None:
    halted = halt(whole, driver, way, sql)
    os.kill(halted["pid"], signal.SIGKILL)
    assert_done_once(whole, driver, halted, elsewhere=False)
    assert driver.ask("executors") == 2
