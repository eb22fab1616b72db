"""Run the tasks of a conversion in Spark's: nothing comes back but descriptions of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import InternalError
from icesql.maintain.convert.task import (
    ConversionResult,
    ConversionTask,
    NewDelete,
    Runner,
    Tasks,
    as_of,
    run_conversion_task,
)
from icesql.maintain.tasks_on_spark import TasksOnSpark
from icesql.storage.uncommitted import Uncommitted
from icesql.write.described_files import decoding

if TYPE_CHECKING:
    from icesql.engine.spark.engine import SparkEngine
    from icesql.engine.spark.writing.task_runs import TaskOutcome

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(ConversionResult)


class ConversionJob(Struct, frozen=True):
    """A task as it travels to a worker."""

    task: ConversionTask

    def __call__(self, query: QueryContext, attempt: int) -> bytes:
        """The description of the files; what fails leaves none. Raises what the task does."""
        done = run_conversion_task(self.task, query, attempt=attempt)
        # The driver knows the partitions.
        bare = tuple(
            replace(each, delete=replace(each.delete, partition=())) for each in done.deletes
        )
        return _ENCODER.encode(replace(done, deletes=bare))


def run_on_spark(engine: SparkEngine) -> Runner:
    """A runner of conversions: each task a Spark task, tried again where a worker is lost."""

    def run(tasks: Tasks, query: QueryContext) -> Iterator[ConversionResult]:
        return TasksOnSpark(engine, tasks, query, ConversionJob, _result, _new).results()

    return run


def _new(task: ConversionTask) -> Uncommitted:
    return Uncommitted(task.storage, task.folder, task.operation)


def _result(task: ConversionTask, outcome: TaskOutcome) -> tuple[ConversionResult, list[str]]:
    """The result of a task, and the paths of its files. Raises its error."""
    if outcome.error is not None:
        raise outcome.error
    with decoding():
        done = _DECODER.decode(outcome.result)
        deletes = tuple(_checked(each, task) for each in done.deletes)
    paths = [each.delete.path for each in deletes]
    files = [file for each in deletes for file in each.files]
    if len({*files}) != len(files):
        raise InternalError("a task reported two delete files of a data file")
    return replace(done, number=task.number, deletes=deletes), paths


def _checked(made: NewDelete, task: ConversionTask) -> NewDelete:
    """A delete of the task's files, with their partition. Raises ValueError for another."""
    files = [task.scan.tasks[task.files.index(each)].data_file for each in made.files]
    if made.delete.referenced_data_file != (files[0].path if len(files) == 1 else None):
        raise ValueError(f"{made.delete.path} is not of {files[0].path}")
    return replace(made, delete=as_of(made.delete, files[0]))
