"""The functions that Spark's workers run to write, without Spark; with Spark: tests/spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.engine.spark.task_memory import TaskMemory
from icesql.engine.spark.worker import decode_error, new_mark, pack
from icesql.engine.spark.writing import job as job_module
from icesql.engine.spark.writing.frame import collect_written
from icesql.engine.spark.writing.job import (
    PartitionJob,
    RowsTask,
    WriteJob,
    partition_numbers,
    run_jobs,
    write_batches,
)
from icesql.errors import DataError, InternalError
from icesql.iceberg import types as t
from icesql.storage.new_files import Uncommitted
from icesql.write.assignment import Assignment
from icesql.write.write_task import WriteTask
from icesql.write.written import Written, decode_written, encode_written
from tests.write.test_write_task import metadata, task_of

MARK = new_mark()
FIELDS = (t.NestedField(1, "i", t.LONG), t.NestedField(2, "u", t.UUID))
COLUMNS = (ResultColumn("a", ResultType("bigint")), ResultColumn("b", ResultType("uuid")))


@pytest.fixture(autouse=True)
def needs_spark() -> None:
    pytest.importorskip("pyspark", reason="a worker asks PySpark for the number of its task")


def task(tmp_path: Path) -> WriteTask:
    return task_of(metadata(tmp_path, *FIELDS, spec="1 bucket[4] b"))


def spark_rows(*numbers: int) -> pa.RecordBatch:
    texts = [f"00000000-0000-0000-0000-{number:012}" for number in numbers]
    return pa.RecordBatch.from_pydict(
        {"c0": pa.array(numbers, pa.int64()), "c1": pa.array(texts, pa.string())}
    )


def written(task: WriteTask, *batches: pa.RecordBatch) -> tuple[bytes, bool]:
    job = RowsTask(WriteJob(task), COLUMNS, TaskMemory())
    (row,) = write_batches(pack((MARK, job)), iter(batches))
    ((described, repeated),) = (each.values() for each in row.to_pylist())
    return described, repeated


def test_rows_of_spark_become_files_of_the_table(tmp_path: Path) -> None:
    given = task(tmp_path)
    described = written(given, spark_rows(*range(50)), spark_rows(*range(50, 100)))
    found = collect_written(given, [described])
    assert (found.rows, {each.partition for each in found.files}) == (
        100,
        {(0,), (1,), (2,), (3,)},
    )
    rows = pa.concat_tables([pq.read_table(each.path, partitioning=None) for each in found.files])
    assert sorted(rows.column("i").to_pylist()) == [*range(100)]
    by_number = dict(zip(*(rows.column(name).to_pylist() for name in "iu"), strict=True))
    assert str(by_number[77]).endswith("000077")


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    given = task(tmp_path)
    assert collect_written(given, [written(given)]) == Written()


def test_a_lost_try_is_not_part_of_the_table_and_shares_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = task(tmp_path)
    monkeypatch.setattr(job_module, "task_numbers", lambda: (3, 41))
    lost = collect_written(given, [written(given, spark_rows(*range(9)))])
    monkeypatch.setattr(job_module, "task_numbers", lambda: (3, 42))
    found = collect_written(given, [written(given, spark_rows(*range(9)))])
    names = [Path(each.path).name for each in (*lost.files, *found.files)]
    assert len(set(names)) == len(names)
    assert all(name.startswith(("00003-41-", "00003-42-")) for name in names)


def test_what_a_lost_try_has_written_goes_once_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = task(tmp_path)
    written(given, spark_rows(*range(9)))
    monkeypatch.setattr(job_module, "task_numbers", lambda: (0, 1))
    monkeypatch.setattr(job_module, "is_repeated", lambda: True)
    found = collect_written(given, [written(given, spark_rows(*range(9)))])
    left = {str(each) for each in Path(given.locations.folder).rglob("*") if each.is_file()}
    assert left == {each.path for each in found.files}


def test_what_fails_leaves_no_file_of_any_task(tmp_path: Path) -> None:
    given, other = task(tmp_path), task(tmp_path)
    done, kept = (written(each, spark_rows(1, 2)) for each in (given, other))

    def described() -> Iterator[tuple[bytes, bool]]:
        yield done
        raise DataError("a task failed")

    # The file of a task that returned no description.
    written(given, spark_rows(3))
    (Path(given.locations.folder) / f".00001-9-{given.operation}-00001.parquet.ab.part").touch()
    with pytest.raises(DataError, match="a task failed"):
        collect_written(given, described())
    left = {str(each) for each in Path(given.locations.folder).rglob("*") if each.is_file()}
    assert left == {each.path for each in decode_written(kept[0], lambda _: [t.INTEGER]).files}


@pytest.mark.parametrize("what", ["twice", "foreign", "elsewhere"])
def test_files_that_a_task_cannot_have_written_are_refused(tmp_path: Path, what: str) -> None:
    given = task(tmp_path)
    described, _ = written(given, spark_rows(1))
    if what != "twice":
        result = decode_written(described, lambda _: [t.INTEGER])
        path = result.files[0].path
        path = path.replace(given.operation, "x") if what == "foreign" else f"/etc/{path}"
        described = encode_written(replace(result, data=(replace(result.files[0], path=path),)))
    with pytest.raises(InternalError):
        collect_written(given, [(described, False)] * (2 if what == "twice" else 1))


def test_leftovers_that_cannot_be_listed_are_no_error(tmp_path: Path) -> None:
    given = task(tmp_path)
    for folder in (str(tmp_path / "none"), "s3://none.invalid/t"):
        with Uncommitted(given.storage, folder, "x") as new:
            new.lost = True


class Telling(Struct, frozen=True):
    number: int

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        assert query.settings.threads == 1
        assert query.settings.memory_limit == (2 << 30) - (256 << 20)
        if self.number < 0:
            raise DataError(f"no {self.number}")
        return b"%d" % self.number


def test_jobs_tell_what_they_did_or_why_not() -> None:
    memory = TaskMemory(4 << 30, 2)
    jobs = [(at, Telling(number), memory) for at, number in enumerate((5, -1, 7))]
    packed = [pack((MARK, job)) for job in jobs]
    rows = pa.RecordBatch.from_pydict({"job": pa.array(packed, pa.binary())})
    found = pa.Table.from_batches(run_jobs(iter([rows]))).to_pylist()
    assert [(row["number"], row["result"]) for row in found] == [(0, b"5"), (1, None), (2, b"7")]
    error = decode_error(found[1]["error"], MARK)
    assert (type(error), str(error)) == (DataError, "no -1")
    assert decode_error(found[1]["error"], new_mark()) is None


def test_rows_of_a_partition_have_one_number(tmp_path: Path) -> None:
    given = task(tmp_path)
    job = PartitionJob(Assignment(given.schema, (0, 1)), given.spec, COLUMNS)
    batch = spark_rows(*range(40))
    numbers = partition_numbers(pack((MARK, job)), *batch.columns).to_pylist()
    again = partition_numbers(pack((MARK, job)), *batch.slice(7, 20).columns).to_pylist()
    assert numbers[7:27] == again
    assert len(set(numbers)) == 4
