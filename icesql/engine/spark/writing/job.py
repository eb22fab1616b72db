"""The code of Spark's Python workers that writes: rows of one partition become data files."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.engines import RowsJob
from icesql.engine.result_schema import ResultColumn, arrow_schema
from icesql.engine.spark.task_memory import TaskMemory
from icesql.engine.spark.types import declared_batch
from icesql.engine.spark.worker import encode_error, run, unpack
from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.iceberg.partitioning import PartitionSpec
from icesql.write.assignment import Assignment
from icesql.write.ordering import divide, partition_columns
from icesql.write.write_task import WriteTask, write_task
from icesql.write.written import encode_written

if TYPE_CHECKING:
    from icesql.engine.spark.worker import Batches


def worker_query(memory: TaskMemory) -> QueryContext:
    """The context of work in one Spark task: one core, and one task's share of memory."""
    return QueryContext(settings=replace(Settings(), threads=1, memory_limit=memory.limit()))


def task_numbers() -> tuple[int, int]:
    """The number of this task in its stage, and a number that no other attempt of any task has."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())


def is_repeated() -> bool:
    """True if an earlier attempt of this task began, whose files may still exist."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


class WriteJob(Frozen):
    """Writes rows as ``task`` defines."""

    task: WriteTask

    def __call__(
        self,
        batches: Batches,
        schema: pa.Schema,
        query: QueryContext,
        numbers: tuple[int, int],
    ) -> bytes:
        """The description of the files. If anything fails, no file is left."""
        number, attempt = numbers
        # The rows of a task have no known row numbers.
        assignment = replace(self.task.assignment, numbered=False)
        task = replace(self.task, number=number, attempt=attempt, assignment=assignment)
        return encode_written(write_task(task, batches, query))


class RowsTask(Frozen):
    """Passes the rows of a Spark partition, which has the result ``columns``, to ``job``."""

    job: RowsJob
    columns: tuple[ResultColumn, ...]
    memory: TaskMemory

    def __call__(self, batches: Batches) -> Batches:
        """One row: the job's report, and whether the task was tried before."""
        rows = (declared_batch(each, self.columns) for each in batches)
        schema = arrow_schema(self.columns)
        outcome = self.job(rows, schema, worker_query(self.memory), task_numbers())
        yield pa.RecordBatch.from_arrays(
            [pa.array([outcome], pa.binary()), pa.array([is_repeated()])],
            names=["written", "repeated"],
        )


class PartitionJob(Frozen):
    """Computes numbers that are equal for rows of one partition, from the source columns."""

    assignment: Assignment
    spec: PartitionSpec
    columns: tuple[ResultColumn, ...]

    def __call__(self, arrays: Sequence[pa.Array]) -> Iterator[pa.Array]:
        """One array of int64, in the order of the rows."""
        names = [f"c{place}" for place in range(len(arrays))]
        given = pa.RecordBatch.from_arrays([*arrays], names=names)
        rows = pa.Table.from_batches([self.assignment.convert(declared_batch(given, self.columns))])
        places = pa.array(np.arange(rows.num_rows))
        numbers = np.zeros(rows.num_rows, np.int64)
        values = partition_columns(rows.combine_chunks(), self.spec, self.assignment.schema)
        for piece in divide(pa.table({"place": places}), values):
            numbers[piece.rows.column("place").to_numpy()] = zlib.crc32(repr(piece.values).encode())
        yield pa.array(numbers)


def write_batches(packed: bytes, batches: Batches) -> Batches:
    """For ``mapInArrow``: run the job in ``packed`` over the rows of a partition."""
    mark, job = unpack(packed)
    yield from run(lambda: job(batches), mark)


def partition_numbers(packed: bytes, *arrays: pa.Array) -> pa.Array:
    """For an Arrow function of columns: see ``PartitionJob``."""
    mark, job = unpack(packed)
    (numbers,) = run(lambda: job(arrays), mark)
    return numbers


def numbered(packed: bytes, names: Sequence[str], batches: Batches) -> Batches:
    """For ``mapInArrow``: the rows with ``partition_numbers`` of the columns ``names``."""
    for batch in batches:
        numbers = partition_numbers(packed, *(batch.column(name) for name in names))
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, numbers], names=[*batch.schema.names, "icesql_partition"]
        )


def run_jobs(batches: Batches) -> Batches:
    """For ``mapInArrow``: each input row holds a packed (mark, (number, job, memory)).

    Returns a row for each: its number, its result or its error after the mark, and whether the
    task was tried before.
    """
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            mark, (number, job, memory) = unpack(blob)
            result, failed = None, None
            try:
                result = job(worker_query(memory), task_numbers()[1])
            except Error as error:
                failed = encode_error(error, mark)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([number], pa.int32()),
                    pa.array([result], pa.binary()),
                    pa.array([failed], pa.string()),
                    pa.array([is_repeated()]),
                ],
                names=["number", "result", "error", "repeated"],
            )
