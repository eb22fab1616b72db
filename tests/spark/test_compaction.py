"""rewrite_data_files in Spark's tasks: rows, lineage, and what a killed worker leaves."""

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
from icesql.engine.spark.writing import task_runs
from icesql.engine.spark.writing.functions import runner_of_jobs
from icesql.maintain.rewrite.on_spark import run_on_spark
from icesql.maintain.rewrite.run import rewrite
from tests.maintain.rewrite.tables import catalog_of, everything, files_below, planned
from tests.maintain.rewrite.test_run import ORDERS, with_deletes


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
    done = rewrite(catalog, plan, QueryContext(), run=run_on_spark(engine))
    assert done.rewritten_data_files_count == 7
    assert everything(catalog, version) == before
    assert len(files_below(table) - old) == done.added_data_files_count


def killed_where_armed(folder: Path) -> Callable[[], Callable[[Any], Iterator[Any]]]:
    """A runner whose process is killed after each job, as long as there is a file to take away."""
    path, sigkill = str(folder), int(signal.SIGKILL)

    def made() -> Callable[[Any], Iterator[Any]]:
        real = runner_of_jobs()

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
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    table = with_deletes(tmp_path, 2, partitioned=kills == 1)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, 2)
    armed = tmp_path / "armed"
    armed.mkdir()
    for number in range(kills):
        (armed / str(number)).touch()
    monkeypatch.setattr(task_runs, "runner_of_jobs", killed_where_armed(armed))
    plan = planned(catalog, rewrite_all=True)
    if kills == 1:
        done = rewrite(catalog, plan, QueryContext(), run=run_on_spark(engine))
        assert len(files_below(table) - old) == done.added_data_files_count == 3
    else:
        with pytest.raises(icesql.OperationalError, match="Python worker"):
            rewrite(catalog, plan, QueryContext(), run=run_on_spark(engine))
        assert files_below(table) == old
    assert not [*armed.iterdir()]
    assert everything(catalog, 2) == before
