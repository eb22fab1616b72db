"""One task of a rewrite: read live rows, and write them as new files.

Picklable, and the same on this machine and in a remote worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import POS, SNAPSHOT_ID
from icesql.iceberg.types import walk
from icesql.maintain.rewrite.plan import FileGroup, RewritePlan
from icesql.maintain.rewrite.row_order import OrderKeys, RowOrder
from icesql.read.columns.arrow_schema import arrow_schema
from icesql.scan.tasks import (
    CombinedScanTask,
    FileScanTask,
    merge_adjacent,
    pack,
    split_file,
    without_metrics,
)
from icesql.write.parquet_schema import (
    parquet_schema,
    stored_fields,
    stored_places,
    with_binary_variants,
)
from icesql.write.write_task import WriteTask, write_task, write_task_for
from icesql.write.written import FIELDS, Written, with_origins

_LOOKBACK: Final = 1
# The origin of a row: the number of its file in the group, and its position there.
_ORIGIN: Final = (SNAPSHOT_ID, POS)


class RewriteTask(Frozen):
    """Some rows of a group; ``number`` is unique among all tasks of the rewrite."""

    group: int
    number: int
    scan: CombinedScanTask
    write: WriteTask
    order: RowOrder | None

    def run(self, query: QueryContext, attempt: int) -> Written:
        """See ``work.run.Task``: read the live rows and write them.

        Origins give for each row of a new file the number of its source file in the group, and its
        position there. See ``write.written``.
        """
        write = replace(self.write, attempt=attempt)
        if self.order is None:
            return write_task(write, read_live_rows(self.scan, query), query)
        # The rows have only the columns that files store.
        places = stored_places(self.write.schema)
        stored = replace(write, assignment=replace(write.assignment, sources=places))
        return write_task(stored, _ordered(self, self.order, query), query)


def tasks_of(
    plan: RewritePlan, group: FileGroup, first_number: int, operation: str
) -> tuple[RewriteTask, ...]:
    """The tasks of a group: together they read every row of its files once.

    One task for each expected file, with neighbouring rows; if rows are ordered, one task, since
    its rows come from all files.
    """
    order = plan.request.order
    bare = [numbered_file(number, each) for number, each in enumerate(group.files)]
    divided: list[list[FileScanTask]] = [bare]
    if order is None and group.output_files > 1:
        pieces = [piece for each in bare for piece in split_file(each, group.split_size)]
        packed = pack(pieces, group.split_size, lambda each: each.length, lookback=_LOOKBACK)
        divided = [merge_adjacent(each) for each in packed]
    write = _write_task(plan, group)
    columns = with_binary_variants(plan.context.projection)
    carried = replace(columns, fields=(*columns.fields, *_ORIGIN))
    context = replace(plan.context, projection=carried)
    return tuple(
        RewriteTask(
            group.number,
            first_number + index,
            CombinedScanTask(tuple(files), context),
            replace(write, number=first_number + index, operation=operation),
            order,
        )
        for index, files in enumerate(divided)
    )


def numbered_file(number: int, task: FileScanTask) -> FileScanTask:
    """A file of a group, with its number in place of the id of the snapshot that added it.

    Both readers return that id for each row, and a rewrite does not need the real one.
    """
    file = replace(without_metrics(task.data_file), snapshot_id=number)
    return replace(task, data_file=file)


def _write_task(plan: RewritePlan, group: FileGroup) -> WriteTask:
    options, order = plan.request.options, plan.request.order
    made = write_task_for(
        plan.table.metadata,
        plan.table.storage,
        tuple(range(len(plan.schema.fields))),
        spec=plan.spec,
        schema=plan.schema,
    )
    size = options.write_max if order is None else group.split_size
    return replace(
        made,
        assignment=replace(made.assignment, rewrites=True),
        options=replace(made.options, target_file_size=size),
        sort_keys=(),
        sort_order_id=0 if order is None else order.order_id,
        # Rows of one partition in the output spec: they need no clustering.
        clustered=group.partition is not None and plan.spec is plan.table.metadata.spec,
        # One file after the other, so that each has neighbouring rows.
        parallel_files=1,
        origins=True,
    )


def _ordered(task: RewriteTask, order: RowOrder, query: QueryContext) -> Iterator[pa.RecordBatch]:
    """The rows in their order, with the columns that files store."""
    from icesql.engine.duckdb.task_rows import sorted_batches
    from icesql.engine.duckdb_types import optional_type, renamed

    schema = task.write.schema
    keys = OrderKeys(order, schema)
    # Names inside of structs differ between files and the table.
    stored = replace(schema, fields=stored_fields(schema.fields))
    names = with_origins(arrow_schema(with_binary_variants(stored)))

    def with_keys() -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        for batch in read_live_rows(task.scan, query):
            rows = task.write.assignment.convert(batch)
            origins = batch.columns[-len(FIELDS) :]
            carried = with_origins(rows.schema)
            arrays = [*rows.columns, *origins]
            yield pa.RecordBatch.from_arrays(arrays, schema=carried), keys.of(rows)

    # Conversion of the rows for their files makes required fields required again.
    target = pa.schema(
        [each.with_type(optional_type(each.type)) for each in parquet_schema(schema)]
    )
    for batch in sorted_batches(with_keys(), with_origins(target), keys.types, keys.orders, query):
        arrays = [
            renamed(array, each.type) for array, each in zip(batch.columns, names, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names.names)


def read_live_rows(scan: CombinedScanTask, query: QueryContext) -> Iterator[pa.RecordBatch]:
    """The live rows of a task, by the fastest reader that reads them exactly."""
    from icesql.engine.duckdb.task_rows import reads_exactly, task_rows
    from icesql.read.task import read_task

    columns = walk(scan.context.projection.fields)
    variants = any(isinstance(each.type, t.VariantType) for each in columns)
    exactly = not variants and reads_exactly(scan, query)
    return task_rows(scan, query) if exactly else read_task(scan, query)
