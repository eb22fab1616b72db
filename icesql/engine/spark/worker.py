"""The code of Spark's Python workers: scan tasks become Arrow batches that Spark accepts.

Imported by name in the workers, so every machine of a cluster needs icesql.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from icesql.engine.spark.error_transport import encode_error
from icesql.errors import Error
from icesql.frozen import Frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.iceberg.schema import Schema
    from icesql.scan.tasks.task import CombinedScanTask, FileScanTask

    Batches = Iterator[pa.RecordBatch]


def pack(value: Any) -> bytes:
    """A value as the bytes that are sent with a Spark task."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def unpack(data: bytes) -> Any:
    """The value that was passed to ``pack``; only for bytes that the driver packed."""
    return pickle.loads(zlib.decompress(data))


class WorkerError(RuntimeError):
    """Carries an icesql error through Spark in its text."""


def worker_error(error: Error, mark: str) -> WorkerError:
    """``error`` as an exception whose text Spark passes to the query with ``mark``."""
    said = str(error).encode("utf-8", "backslashreplace").decode("utf-8")
    return WorkerError(f"{said}\n{encode_error(error, mark)}")


def read_batches(packed: bytes, batches: Batches) -> Batches:
    """For ``mapInArrow``: ``packed`` is (mark, job), each input row is packed files for the job."""
    mark, job = unpack(packed)
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            yield from run(job.over(unpack(blob)), mark)


def run(job: Callable[[], Batches], mark: str) -> Batches:
    """The batches of a job; icesql errors are encoded for the driver if there is a ``mark``."""
    try:
        yield from job()
    except Error as error:
        if not mark:
            # People read this error: show no traceback or cause before it.
            raise error.with_traceback(None) from None
        raise worker_error(error, mark) from None


class ScanJob(Frozen):
    """Reads one combined task as batches of ``spark_schema`` of its projection."""

    task: CombinedScanTask

    def over(self, files: tuple[FileScanTask, ...]) -> ScanJob:
        """The same job for other files."""
        return ScanJob(replace(self.task, tasks=files))

    def __call__(self) -> Batches:
        """The live rows of the task."""
        from icesql.read.task import read_task

        columns = self.task.context.projection
        for batch in read_task(self.task):
            yield spark_batch(batch, columns)


def spark_batch(batch: pa.RecordBatch, columns: Schema) -> pa.RecordBatch:
    """A batch of ``read/`` with carriers for types that Spark lacks."""
    import pyarrow as pa

    from icesql.engine.spark.types import carrier

    arrays = [
        carrier(array, column.type)
        for array, column in zip(batch.columns, columns.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns.fields])
