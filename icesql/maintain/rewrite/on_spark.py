"""Run the tasks of a rewrite in Spark's: nothing comes back but descriptions of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from icesql.context import QueryContext
from icesql.errors import InternalError
from icesql.iceberg.partitioning import partition_types
from icesql.maintain.rewrite.task import (
    RewriteResult,
    RewriteTask,
    Runner,
    TaskFailure,
    run_rewrite_task,
)
from icesql.maintain.tasks_on_spark import TasksOnSpark
from icesql.storage.new_file import NewFile
from icesql.storage.uncommitted import Uncommitted
from icesql.write.described_files import decode_result, decoding, encode_result
from icesql.write.row_origins import EncodedOrigins
from icesql.write.write_task import WriteResult, WriteTask

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import TaskOutcome

# Origins of rows that travel with a result; Spark's driver takes a gigabyte of results in all.
_MOST_ORIGINS: Final = 32 << 20
_ENCODER: Final = msgspec.msgpack.Encoder()
_ORIGINS: Final = msgspec.msgpack.Decoder(tuple[EncodedOrigins, ...])


class _Answer(Struct, frozen=True):
    """The answer of a task: its files, and the path of a file of their origins if many."""

    written: bytes
    origins: str = ""


_ANSWER: Final = msgspec.msgpack.Decoder(_Answer)


class RewriteJob(Struct, frozen=True):
    """A task as it travels to a worker."""

    task: RewriteTask

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        """The description of the files; what fails leaves none. Raises what the task does."""
        done = run_rewrite_task(self.task, query, attempt=attempt)
        origins, path = done.origins, ""
        if sum(len(part) for each in origins for part in each) > _MOST_ORIGINS:
            with Uncommitted(self.task.write.storage) as new:
                new.take(each.path for each in done.files)
                path = _write_origins(self.task.write, origins, attempt)
                new.hand_over()
            origins = ()
        written = encode_result(WriteResult(done.files, done.rows, done.bytes, origins=origins))
        return _ENCODER.encode(_Answer(written, path))


def _write_origins(write: WriteTask, origins: tuple[EncodedOrigins, ...], attempt: int) -> str:
    """The path of a file beside the new ones, that goes once it was read."""
    name = f"origins-{write.operation}-{write.number:05d}-{attempt}.bin"
    path = write.locations.path(name)
    with NewFile(write.storage, path) as file:
        file.write(_ENCODER.encode(origins))
    return path


def _read_origins(write: WriteTask, path: str) -> tuple[EncodedOrigins, ...]:
    """Read the file of ``_write_origins``, and remove it."""
    own = path.startswith(write.locations.folder) and f"origins-{write.operation}-" in path
    if not own:
        raise InternalError(f"a task reported {path}, which it cannot have written")
    with Uncommitted(write.storage) as new:
        new.take([path])
        data = write.storage.read(path)
        with decoding():
            return _ORIGINS.decode(data)


def run_on_spark(engine: SparkEngine) -> Runner:
    """A runner of rewrites: each task a Spark task, tried again where a worker is lost."""

    def run(
        tasks: Iterable[RewriteTask], query: QueryContext
    ) -> Iterator[RewriteResult | TaskFailure]:
        return TasksOnSpark(engine, lambda slots: tasks, query, RewriteJob, _result, _new).results()

    return run


def _new(task: RewriteTask) -> Uncommitted:
    return Uncommitted(task.write.storage, task.write.locations.folder, task.write.operation)


def _result(
    task: RewriteTask, outcome: TaskOutcome
) -> tuple[RewriteResult | TaskFailure, list[str]]:
    """The result of a task, and the paths of its files."""
    if outcome.error is not None:
        return TaskFailure(task.group, task.number, outcome.error), []
    write = task.write
    with decoding():
        answer = _ANSWER.decode(outcome.result)
    written = decode_result(answer.written, partition_types(write.spec, write.schema))
    origins = _read_origins(write, answer.origins) if answer.origins else written.origins
    result = RewriteResult(
        task.group, task.number, written.files, written.rows, written.bytes, origins
    )
    return result, [each.path for each in written.files]
