"""What runs in Spark's Python workers: scan tasks become Arrow batches that Spark takes.

Imported by name in the workers, so every machine of a cluster needs icesql.
"""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import Error

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.iceberg.schema import Schema
    from icesql.scan.task import CombinedScanTask

# An icesql error crosses the JVM as text: this, then its pickled form in base64.
ERROR_MARK: Final = "icesql-error:"


def pack(value: Any) -> bytes:
    """A value as the bytes that travel with a Spark task."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def unpack(data: bytes) -> Any:
    """The value that ``pack`` was given."""
    return pickle.loads(zlib.decompress(data))


class WorkerError(RuntimeError):
    """Carries an icesql error through Spark; its text holds the pickled error."""


def crossing(error: Error) -> WorkerError:
    """``error`` as one whose text survives Spark."""
    text = base64.b64encode(pickle.dumps(error)).decode("ascii")
    return WorkerError(f"{error}\n{ERROR_MARK}{text};")


def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: each input row holds one packed job, whose batches come out."""
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            yield from run(unpack(blob))


def run(job: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches of a job; its icesql errors become ones that cross."""
    try:
        yield from job()
    except Error as error:
        raise crossing(error) from None


class ScanJob:
    """Reads one combined task as batches of ``spark_schema`` of its projection."""

    def __init__(self, task: CombinedScanTask) -> None:
        self.task = task

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The live rows of the task."""
        from icesql.read.task import read_task

        columns = self.task.context.projection
        for batch in read_task(self.task):
            yield spark_batch(batch, columns)


def spark_batch(batch: pa.RecordBatch, columns: Schema) -> pa.RecordBatch:
    """A batch of ``read/`` with carriers for what Spark lacks."""
    import pyarrow as pa

    from icesql.engine.spark.types import carrier

    arrays = [
        carrier(array, column.type)
        for array, column in zip(batch.columns, columns.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns.fields])
