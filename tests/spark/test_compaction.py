"""rewrite_data_files in Spark's tasks: rows, lineage, and the files of a killed worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.context import QueryContext
from icesql.engine.spark.engine import SparkEngine
from icesql.engine.spark.worker import by_name
from icesql.engine.spark.writing import task_runs
from icesql.maintain.deletes.plan import plan_conversion
from icesql.maintain.deletes.run import convert
from icesql.maintain.rewrite.run import rewrite
from icesql.work.run import run_in_spark
from tests.maintain.rewrite.tables import catalog_of, everything, files_below, planned
from tests.maintain.rewrite.test_run import ORDERS, with_deletes
from tests.spark.conftest import here, lake


@pytest.fixture
def engine(connect: Any) -> Iterator[SparkEngine]:
    made = SparkEngine({"master": "local[2]"})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("version", "partitioned", "strategy"), [(2, True, "binpack"), (3, False, "sort")]
)
def test_rows_and_their_lineage_stay(
    engine: SparkEngine, tmp_path: Path, version: int, partitioned: bool, strategy: str
) -> None:
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, version)
    plan = planned(catalog, strategy, ORDERS[strategy], rewrite_all=True)
    done = rewrite(catalog, plan, QueryContext(), run=run_in_spark(engine))
    assert done.rewritten_data_files_count == 7
    assert everything(catalog, version) == before
    assert len(files_below(table) - old) == done.added_data_files_count


def killed_where_armed(folder: Path) -> Callable[..., Callable[..., Any]]:
    """``by_name`` with a process that is killed after each job, while it finds a file to remove."""
    path, sigkill = str(folder), int(signal.SIGKILL)

    def made(module: str, name: str, *given: Any) -> Callable[..., Any]:
        real = by_name(module, name, *given)
        if name not in ("run_jobs", "write_batches"):
            return real

        def run(batches: Any) -> Iterator[Any]:
            for each in real(batches):
                for name in os.listdir(path):
                    try:
                        os.unlink(os.path.join(path, name))
                    except FileNotFoundError:
                        continue
                    os.kill(os.getpid(), sigkill)
                yield each

        return run

    return made


@pytest.mark.parametrize("kills", [1, 3])
def test_a_worker_that_is_killed_loses_nothing(
    engine: SparkEngine, tmp_path: Path, armed: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    table = with_deletes(tmp_path, 2, partitioned=kills == 1)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, 2)
    for number in range(kills):
        (armed / str(number)).touch()
    monkeypatch.setattr(task_runs, "by_name", killed_where_armed(armed))
    plan = planned(catalog, rewrite_all=True)
    if kills == 1:
        done = rewrite(catalog, plan, QueryContext(), run=run_in_spark(engine))
        assert len(files_below(table) - old) == done.added_data_files_count == 3
    else:
        with pytest.raises(icesql.OperationalError, match="Python worker"):
            rewrite(catalog, plan, QueryContext(), run=run_in_spark(engine))
        assert files_below(table) == old
    assert not [*armed.iterdir()]
    assert everything(catalog, 2) == before


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the jobs that Spark has run."""
    runs: list[int] = []
    real = SparkEngine.run_jobs

    def counted(*given: Any) -> Any:
        for each in real(*given):
            runs.append(each.number)
            yield each

    monkeypatch.setattr(SparkEngine, "run_jobs", counted)
    return runs


@pytest.mark.parametrize(
    ("setting", "told"), [("spark", "in tasks of Spark"), ("auto", "engine spark: ")]
)
def test_the_setting_chooses_spark(
    connect: Any, tmp_path: Path, runs: list[int], setting: str, told: str
) -> None:
    call = (
        "CALL system.rewrite_data_files('s.t', options => map('min-input-files', '2', "
        "'partial-progress.enabled', 'true'))"
    )
    rows = (f"INSERT INTO s.t SELECT i, i % 2 FROM range({n}, {n} + 10) r(i)" for n in range(3))
    created = "CREATE TABLE s.t (i BIGINT, k INT) PARTITIONED BY (k)"
    with lake(connect, tmp_path, created, *rows) as con:
        before = here(con, "SELECT * FROM s.t ORDER BY ALL")
        con.execute(f"SET engine = '{setting}'")
        con.execute("SET spark_threshold = 100000")
        explained = con.execute(f"EXPLAIN {call}").notes[0]
        assert (told in explained) == (setting == "spark")
        con.execute("SET spark_threshold = 1000")
        assert told in con.execute(f"EXPLAIN {call}").notes[0]
        assert runs == []
        ((rewritten, added, *_),) = con.execute(call).fetchall()
        assert (rewritten, added, sorted(runs)) == (6, 2, [0, 1])
        assert here(con, "SELECT * FROM s.t ORDER BY ALL") == before
        assert here(con, "SELECT count(*) FROM s.t.snapshots") == [(5,)]


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_are_converted(
    engine: SparkEngine, tmp_path: Path, armed: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    table = with_deletes(tmp_path, version, partitioned=True)
    catalog = catalog_of(table)
    folder = Path(table.folder, "data")
    old, before = {*folder.rglob("*.*")}, everything(catalog, version)
    monkeypatch.setattr(task_runs, "by_name", killed_where_armed(armed))
    planned = plan_conversion(catalog.load(("ns", "t")), QueryContext())
    runner = run_in_spark(engine)
    done = convert(catalog, planned, QueryContext(), run=runner)
    assert (done.removed, done.added, done.rows, done.left) == (3, 3, 3, 0)
    assert everything(catalog, version) == before
    assert len({*folder.rglob("*.*")} - old) == 3
    assert not [*armed.iterdir()]


def test_the_setting_chooses_spark_for_a_conversion(
    connect: Any, tmp_path: Path, runs: list[int]
) -> None:
    table = with_deletes(tmp_path, 3)
    call = "CALL system.convert_equality_deletes('ns.t')"
    with connect(warehouse=catalog_of(table).folder) as con:
        con.execute("SET engine = 'auto'")
        con.execute("SET spark_threshold = 100000")
        assert "engine local: " in con.execute(f"EXPLAIN {call}").notes[0]
        con.execute("SET engine = 'spark'")
        assert "in tasks of Spark" in con.execute(f"EXPLAIN {call}").notes[0]
        con.execute("SET engine = 'auto'")
        con.execute("SET spark_threshold = 100")
        assert "engine spark: " in con.execute(f"EXPLAIN {call}").notes[0]
        assert runs == []
        assert con.execute(call).fetchall() == [(1, 3, 3, 0)]
        assert sorted(runs) == [0, 1]
        assert con.execute(call).fetchall() == [(0, 0, 0, 0)]
        assert sorted(runs) == [0, 1]
