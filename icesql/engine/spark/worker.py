"""The code of Spark's Python workers: scan tasks become Arrow batches that Spark accepts.

Imported by name in the workers, so every machine of a cluster needs icesql. Errors return to the
driver as data.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickle
import re
import secrets
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

import icesql.errors
from icesql.errors import Error
from icesql.frozen import Frozen

# ------------------------------------------------------------------ errors as data
# One of icesql's classes and its fields, after a mark: an error crosses Spark as text, and that
# text quotes rows, paths and names of strangers. So only the text after the query's mark is
# decoded: the mark is a random word that the driver makes for this query, which no data can
# contain. The decoded error has one of a fixed list of classes and plain values; any other content
# is ignored.


# The classes that a text may be decoded to, by name.
CLASSES: Final[dict[str, type[Error]]] = {
    name: each
    for name, each in vars(icesql.errors).items()
    if isinstance(each, type) and issubclass(each, Error)
}
_PLAIN = str | int | float | bool | None


def new_mark() -> str:
    """A new mark for one query; it must not get into a file, a name or a row."""
    return f"icesql-{secrets.token_hex(16)}:"


def encode_error(error: Error, mark: str) -> str:
    """``error`` as text that begins with the mark and contains no character that is quoted."""
    cls = next(each for each in type(error).__mro__ if CLASSES.get(each.__name__) is each)
    content = {
        "class": cls.__name__,
        "message": str(error),
        "fields": {name: _plain(value) for name, value in vars(error).items()},
    }
    text = json.dumps(content, ensure_ascii=True, allow_nan=True)
    return f"{mark}{base64.b64encode(text.encode('ascii')).decode('ascii')};"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [each if isinstance(each, _PLAIN) else str(each) for each in value]
    return value if isinstance(value, _PLAIN) else str(value)


def decode_error(text: str, mark: str) -> Error | None:
    """The error that a worker of the query with this mark raised; None if the text has none.

    The last one counts, since Spark adds text after messages. A malformed one counts as none.
    """
    payloads = re.findall(re.escape(mark) + r"([A-Za-z0-9+/=]+);", text)
    if not payloads:
        return None
    try:
        return _restored(json.loads(base64.b64decode(payloads[-1], validate=True)))
    except (binascii.Error, ValueError, RecursionError):
        return None


def _restored(data: Any) -> Error | None:
    """The error from parsed JSON; None unless it has exactly the form of ``encode_error``."""
    match data:
        case {"class": str(name), "message": str(message), "fields": dict(fields)}:
            cls = CLASSES.get(name)
        case _:
            return None
    if cls is None or not all(_is_field(cls, key, value) for key, value in fields.items()):
        return None
    error = cls.__new__(cls)
    error.args = (message,)
    for key, value in fields.items():
        error.__dict__[key] = tuple(value) if isinstance(value, list) else value
    return error


def _is_field(cls: type[Error], name: str, value: Any) -> bool:
    """True if an error may have this field: a plain value, and a name that overrides at most a
    plain default of its class."""
    values = value if isinstance(value, list) else [value]
    return (
        name.isidentifier()
        and not name.startswith("_")
        and isinstance(getattr(cls, name, None), _PLAIN)
        and all(isinstance(each, _PLAIN) for each in values)
    )


# ------------------------------------------------------------------ scan tasks


if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.iceberg.schema import Schema
    from icesql.scan.tasks import CombinedScanTask, FileScanTask

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


# ------------------------------------------------------------------ functions by name
# Spark sends them to its workers, also to workers without icesql on their path. A nested function
# is pickled by value, so it can add the path before it imports the package. Its arguments are
# packed, so that no plan shows them.


def finder() -> Callable[[], None]:
    """A function that lets a process, which Spark started, import this icesql."""
    from pathlib import Path

    folder = str(Path(icesql.errors.__file__).resolve().parent.parent)

    def find() -> None:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)

    return find


def by_name(module: str, name: str, *given: Any) -> Callable[..., Any]:
    """A function that calls ``name`` in a module of this room with ``given`` and its arguments."""
    find = finder()

    def run(*rows: Any) -> Any:
        from importlib import import_module

        find()
        return getattr(import_module(f"icesql.engine.spark.{module}"), name)(*given, *rows)

    # PySpark infers the kind of a function from annotations; none fits a variable argument list.
    run.__annotations__.clear()
    return run
