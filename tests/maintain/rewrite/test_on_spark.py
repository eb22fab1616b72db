"""Spark's runner without Spark: serialization, lost tasks, remaining files. See tests/spark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

import icesql
from icesql.context import QueryContext
from icesql.engine.spark.task_memory import TaskMemory
from icesql.engine.spark.worker import decode_error, new_mark, pack
from icesql.engine.spark.writing.job import run_jobs
from icesql.engine.spark.writing.task_runs import Numbered, TaskOutcome, chunks_of
from icesql.errors import DataError, OperationalError
from icesql.maintain.rewrite.task import RewriteTask
from icesql.storage.new_files import NewFile
from icesql.work import run as machine
from icesql.work.run import run_in_spark
from icesql.write.written import Written
from tests.maintain.rewrite.tables import (
    catalog_of,
    everything,
    files_below,
    new_table,
    planned,
    rewrite,
)
from tests.maintain.rewrite.test_run import ORDERS, with_deletes

MARK = new_mark()


class Workers:
    """Runs jobs as workers do; ``loses`` decides whether the first attempt of a job is lost."""

    def __init__(self, loses: Callable[[int], bool] = lambda number: False) -> None:
        self._loses = loses
        self.chunks: list[int] = []

    def run_jobs(
        self,
        jobs: Callable[[int], Iterable[Numbered]],
        query: QueryContext,
    ) -> Generator[TaskOutcome, None, None]:
        for chunk in chunks_of(jobs(2), 2):
            self.chunks.append(len(chunk))
            for each in chunk:
                lost = self._loses(each[0])
                if lost:
                    self._run(each)
                yield self._run(each, lost=lost)

    def _run(self, job: Numbered, *, lost: bool = False) -> TaskOutcome:
        packed = pa.RecordBatch.from_pydict(
            {"job": pa.array([pack((MARK, (*job, TaskMemory())))], pa.binary())}
        )
        ((row,),) = (batch.to_pylist() for batch in run_jobs(iter([packed])))
        error = decode_error(row["error"] or "", MARK)
        return TaskOutcome(row["number"], row["result"] or b"", error, lost)


@pytest.fixture(autouse=True)
def attempts(monkeypatch) -> None:
    """Each run of a job is a new attempt, as in Spark."""
    pytest.importorskip("pyspark", reason="a worker asks PySpark for the number of its task")
    numbers = iter(range(1000))
    monkeypatch.setattr("icesql.engine.spark.writing.job.task_numbers", lambda: (0, next(numbers)))


@pytest.mark.parametrize(
    ("version", "partitioned", "strategy"),
    [(1, False, "binpack"), (2, True, "sort"), (3, True, "binpack"), (3, False, "zorder")],
)
def test_rows_and_their_lineage_stay(
    tmp_path, version: int, partitioned: bool, strategy: str
) -> None:
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    catalog = catalog_of(table)
    before = everything(catalog, version)
    plan = planned(catalog, strategy, ORDERS[strategy], rewrite_all=True)
    workers: Any = Workers()
    done = rewrite(catalog, plan, run=run_in_spark(workers))
    assert done.rewritten_data_files_count == 7
    assert everything(catalog, version) == before
    assert workers.chunks == ([2, 1] if partitioned else [1])


def test_what_lost_tries_wrote_is_removed(tmp_path) -> None:
    table = with_deletes(tmp_path, 2, partitioned=True)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, 2)
    workers: Any = Workers(lambda number: number != 1)
    plan = planned(catalog, rewrite_all=True)
    done = rewrite(catalog, plan, run=run_in_spark(workers))
    assert everything(catalog, 2) == before
    assert len(files_below(table) - old) == done.added_data_files_count == 3


@pytest.mark.parametrize("partial", [False, True])
def test_a_task_that_fails_fails_its_group(tmp_path, partial: bool, monkeypatch) -> None:
    real = RewriteTask.run

    def failing(task: Any, *given: Any) -> Any:
        if task.number == 1:
            raise DataError("not this one")
        return real(task, *given)

    monkeypatch.setattr(RewriteTask, "run", failing)
    table = with_deletes(tmp_path, 2, partitioned=True)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, 2)
    workers: Any = Workers()
    plan = planned(catalog, rewrite_all=True, partial_progress__enabled=partial)
    if partial:
        done = rewrite(catalog, plan, run=run_in_spark(workers))
        assert (done.failures, done.added_data_files_count) == (("not this one",), 2)
    else:
        with pytest.raises(DataError, match="not this one"):
            rewrite(catalog, plan, run=run_in_spark(workers))
        assert files_below(table) == old
    assert everything(catalog, 2) == before


def test_what_nobody_was_told_of_is_removed(tmp_path) -> None:
    table = with_deletes(tmp_path, 2, partitioned=True)
    catalog, old = catalog_of(table), files_below(table)

    def dies(number: int) -> bool:
        if number == 2:
            raise OperationalError("Spark has ended")
        return number == 1

    workers: Any = Workers(dies)
    plan = planned(catalog, rewrite_all=True)
    with pytest.raises(OperationalError, match="Spark has ended"):
        rewrite(catalog, plan, run=run_in_spark(workers))
    assert files_below(table) == old


@pytest.mark.parametrize("broken", ["lost", "elsewhere", "bytes", "full"])
def test_long_descriptions_leave_no_file(tmp_path, broken: str, monkeypatch) -> None:
    monkeypatch.setattr(machine, "_MOST_BYTES", 1)
    real, encode = NewFile.write, machine.encode_written

    def write(file: NewFile, data: Any) -> int:
        is_ours = file.path.endswith(".bin")
        if broken == "full" and is_ours:
            raise OperationalError("the disk is full")
        return real(file, b"no description" if broken == "bytes" and is_ours else data)

    def elsewhere(written: Written) -> bytes:
        if broken == "elsewhere" and written.apart:
            written = replace(written, apart=(str(tmp_path / "elsewhere"),))
        return encode(written)

    monkeypatch.setattr(NewFile, "write", write)
    monkeypatch.setattr(machine, "encode_written", elsewhere)
    table = with_deletes(tmp_path, 2, partitioned=True)
    catalog = catalog_of(table)
    folder = Path(table.folder, "data")
    old, before = {*folder.rglob("*.*")}, everything(catalog, 2)
    workers: Any = Workers(lambda number: broken == "lost")
    plan = planned(catalog, rewrite_all=True)
    if broken == "lost":
        done = rewrite(catalog, plan, run=run_in_spark(workers))
        assert len({*folder.rglob("*.*")} - old) == done.added_data_files_count
    else:
        errors = {"bytes": "cannot be decoded", "full": "the disk is full"}
        with pytest.raises(icesql.Error, match=errors.get(broken, "cannot have written")):
            rewrite(catalog, plan, run=run_in_spark(workers))
        assert {*folder.rglob("*.*")} == old
    assert everything(catalog, 2) == before


def test_nothing_to_rewrite_starts_no_spark(tmp_path) -> None:
    table = new_table(tmp_path)
    table.append([{"id": 1}])
    catalog = catalog_of(table)
    none: Any = None
    done = rewrite(catalog, planned(catalog), run=run_in_spark(none))
    assert done.rewritten_data_files_count == 0
