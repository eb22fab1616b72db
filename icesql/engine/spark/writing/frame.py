"""The DataFrame of a write: its rows are distributed as the table requires, then written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from icesql.engine.engines import Reports, RowsJob
from icesql.engine.result_schema import ResultColumn
from icesql.engine.spark.releases import rebalanced
from icesql.engine.spark.start_up import without_warnings
from icesql.engine.spark.task_memory import task_memory
from icesql.engine.spark.worker import by_name, pack
from icesql.engine.spark.writing.job import PartitionJob, RowsTask, WriteJob
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.transforms import parse_transform
from icesql.storage.new_files import Uncommitted
from icesql.write.write_task import WriteTask
from icesql.write.written import Written, reported

_WRITTEN = "written BINARY, repeated BOOLEAN"
_PARTITION = "icesql_partition"


def written_frame(frame: Any, columns: Sequence[ResultColumn], task: WriteTask, mark: str) -> Any:
    """Write the rows of ``frame``, columns c0, c1, …, in as many tasks as it has partitions.

    The DataFrame has a row for each task: ``written``, see ``write.written``, and whether the
    task was tried before.
    """
    with without_warnings():
        spread = _distributed(frame, columns, task, mark)
    return outcome_frame(spread, columns, WriteJob(task), mark, None)


def collect_written(task: WriteTask, described: Reports) -> Written:
    """Combine the rows of ``written_frame`` into one description, in the order of the tasks.

    Files of lost attempts are removed. After any failure, all finished files are removed, also
    those of tasks whose description never arrived. A task that still runs then may leave a file
    that no table refers to.
    """
    types = {task.spec.spec_id: partition_types(task.spec, task.schema)}
    with Uncommitted(task.storage, task.locations.folder, task.operation) as new:
        written = Written.of(reported(described, types.__getitem__, new))
        new.hand_over()
    return written


def outcome_frame(
    frame: Any, columns: Sequence[ResultColumn], job: RowsJob, mark: str, together: int | None
) -> Any:
    """The reports of ``job`` on the rows of ``frame``: a row for each task, see ``written_frame``.

    Rows with the same value in the column ``together``, if any, are in one task.
    """
    names = [f"c{place}" for place in range(len(columns))]
    task = RowsTask(job, tuple(columns), task_memory(frame.sparkSession))
    with without_warnings():
        spread = frame if together is None else frame.repartition(names[together])
        write_rows = by_name("writing.job", "write_batches", pack((mark, task)))
        return spread.select(*names).mapInArrow(write_rows, _WRITTEN)


def _distributed(frame: Any, columns: Sequence[ResultColumn], task: WriteTask, mark: str) -> Any:
    if task.distribution == "none":
        return frame
    from pyspark.sql.functions import col

    keys: list[Any] = []
    found = _partition_job(columns, task)
    if found is not None:
        frame = _numbered(frame, *found, mark)
        # A hint accepts only names.
        keys.append(col(_PARTITION))
    if task.distribution == "range":
        keys += _sorted_by(frame, task)
        if keys:
            return frame.repartitionByRange(*keys)
    if not keys:
        return frame
    if str(frame.sparkSession.conf.get("spark.sql.adaptive.enabled")).lower() == "true":
        # Spark divides large partitions again, and combines small ones into a task.
        return rebalanced(frame, keys)
    return frame.repartition(*keys)


def _sources(task: WriteTask) -> dict[int, int | None]:
    """The position of each table column in the rows, by field id."""
    fields = task.schema.fields
    pairs = zip(fields, task.assignment.sources, strict=True)
    return {field.field_id: source for field, source in pairs}


def _partition_job(
    columns: Sequence[ResultColumn], task: WriteTask
) -> tuple[PartitionJob, list[str]] | None:
    """The numbering of rows by partition, and its columns; None if there is one partition."""
    schema, spec = task.schema, task.spec
    sources = _sources(task)
    tops = {_top(task, each.source_id) for each in spec.fields}
    kept = tuple(each for each in schema.fields if each.field_id in tops)
    given = [sources[each.field_id] for each in kept]
    read = [source for source in dict.fromkeys(given) if source is not None]
    if not read or spec.is_unpartitioned:
        return None
    assignment = replace(
        task.assignment,
        schema=replace(schema, fields=kept),
        sources=tuple(None if source is None else read.index(source) for source in given),
        numbered=False,
    )
    job = PartitionJob(assignment, spec, tuple(columns[source] for source in read))
    return job, [f"c{source}" for source in read]


def _numbered(frame: Any, job: PartitionJob, names: list[str], mark: str) -> Any:
    """The rows with a number that is the same for all rows of a partition."""
    from pyspark.sql import functions
    from pyspark.sql.types import LongType, StructType

    packed = pack((mark, job))
    if hasattr(functions, "arrow_udf"):
        numbers = by_name("writing.job", "partition_numbers", packed)
        number = functions.arrow_udf(numbers, "bigint")
        return frame.withColumn(_PARTITION, number(*(functions.col(name) for name in names)))
    # Before PySpark 4.1, whole rows are sent to Python and back.
    schema = StructType([*frame.schema.fields]).add(_PARTITION, LongType())
    return frame.mapInArrow(by_name("writing.job", "numbered", packed, names), schema)


def _top(task: WriteTask, field_id: int) -> int:
    """The id of the table's column that contains this field."""
    parents = task.schema.parent_by_id
    while field_id in parents:
        field_id = parents[field_id]
    return field_id


def _sorted_by(frame: Any, task: WriteTask) -> list[Any]:
    """The leading keys of the sort order for which the rows have a column in the same order."""
    sources, keys = _sources(task), list[Any]()
    for each in task.sort_keys:
        source = sources.get(each.source_id)
        if source is None or not parse_transform(each.transform).preserves_order:
            break
        order = "desc" if each.descending else "asc"
        nulls = "first" if each.nulls_first else "last"
        keys.append(getattr(frame[f"c{source}"], f"{order}_nulls_{nulls}")())
    return keys
