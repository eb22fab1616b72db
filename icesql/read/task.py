"""Read scan tasks: live rows of a task as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Leaf, leaves
from icesql.iceberg.metadata_columns import DELETED, METADATA_IDS
from icesql.iceberg.types import IcebergType, NestedField
from icesql.read.ahead import ReadAhead
from icesql.read.columns.arrow_schema import arrow_schema
from icesql.read.columns.metadata_values import MetadataColumn, metadata_column
from icesql.read.columns.partition_constants import partition_constants
from icesql.read.columns.projection import BatchView, ColumnReader, column_reader, sources
from icesql.read.deletes.delete_relations import DeleteRelations
from icesql.read.deletes.equality_keys import EqualityGroup, KeyColumn, leaf_column
from icesql.read.formats.open import open_reader
from icesql.read.formats.reader import FileBatch, FileReader
from icesql.read.residual_filter import both, evaluable, matching
from icesql.scan.tasks.task import CombinedScanTask, FileScanTask, ScanContext

_NO_END = 1 << 62


def read_task(
    task: CombinedScanTask, query: QueryContext | None = None
) -> Iterator[pa.RecordBatch]:
    """Live rows of ``task``: at most 65,536 rows a batch, rows of each file in file order.

    Columns follow the projection of the task's context in ``arrow_schema``'s types. Closing the
    iterator releases the open file. Raises CorruptFileError, StorageError and
    UnsupportedTableError, each naming the file, and QueryCancelledError.
    """
    query = query or QueryContext()
    relations = DeleteRelations(task.context, task.tasks, query)
    ahead = ReadAhead(task.tasks, task.context, query)
    try:
        for index, file_task in enumerate(task.tasks):
            ahead.reach(index)
            yield from read_file(file_task, task.context, query, relations)
    finally:
        ahead.close()


def read_file(
    task: FileScanTask,
    context: ScanContext,
    query: QueryContext,
    relations: DeleteRelations | None = None,
) -> Iterator[pa.RecordBatch]:
    """Live rows of one file task, in file order; empty batches are left out.

    ``relations`` shares loaded deletes between the files of a scan; None loads those of this task.
    If the projection contains ``_deleted``, deleted rows are marked instead of left out.
    """
    query.check()
    if task.residual is ALWAYS_FALSE:
        return
    relations = relations or DeleteRelations(context, (task,), query)
    part = None if task.is_whole_file else byte_range(task)
    opened = open_reader(task.data_file, context)
    try:
        reader = _FileReader(task, context, relations, opened)
        for batch in opened.batches(reader.wanted, part, task.residual):
            query.check()
            rows = reader.rows(batch)
            if rows is not None and rows.num_rows:
                yield rows
    finally:
        opened.close()


def byte_range(task: FileScanTask) -> tuple[int, int]:
    """The bytes of a task; the outermost splits reach to the ends of the file, since some writers
    record a wrong file size."""
    first = min(task.data_file.split_offsets or (0,))
    start, end = task.start, task.start + task.length
    return (
        0 if start <= first else start,
        _NO_END if end >= task.data_file.file_size_in_bytes else end,
    )


class _FileReader:
    """Turns the batches of one file into rows of the projection."""

    def __init__(
        self,
        task: FileScanTask,
        context: ScanContext,
        relations: DeleteRelations,
        opened: FileReader,
    ) -> None:
        self._task, self._context = task, context
        self._location = context.storage.location(task.data_file.path)
        constants = partition_constants(task.data_file, context, self._location)

        def reader(column: NestedField) -> ColumnReader:
            return column_reader(
                column,
                opened.fields,
                constants,
                self._location,
                missing_is_null=opened.missing_is_null,
            )

        self._schema = arrow_schema(context.projection)
        self._columns: list[ColumnReader | MetadataColumn] = [
            metadata_column(column, task, context, reader)
            if column.field_id in METADATA_IDS
            else reader(column)
            for column in context.projection.fields
        ]
        self._marks = any(
            column.field_id == DELETED.field_id for column in context.projection.fields
        )
        self._positions = relations.positions(task)
        self._groups: list[tuple[EqualityGroup, list[ColumnReader]]] = [
            (group, [reader(key.column) for key in group.columns])
            for group in relations.groups_for(task)
        ]
        self._residual: dict[int, tuple[KeyColumn, ColumnReader]] = {}
        for leaf in leaves(task.residual):
            field_id = leaf.term.field_id
            if field_id not in self._residual and evaluable(leaf, context.schema):
                key = leaf_column(context.schema, field_id)
                self._residual[field_id] = (key, reader(key.column))
        used = [
            *(c if isinstance(c, ColumnReader) else c.reader for c in self._columns),
            *(each for _, readers in self._groups for each in readers),
            *(each for _, each in self._residual.values()),
        ]
        self.wanted = sources(used)

    def rows(self, batch: FileBatch) -> pa.RecordBatch | None:
        """The batch's rows that are live and may satisfy the residual; None for none."""
        view = BatchView(batch, self.wanted, self._location)
        deleted = self._deleted(view)
        keep: pa.Array | bool = True
        if deleted is not None and not self._marks:
            if deleted.all():
                return None
            keep = pa.array(~deleted)
        keep = both(keep, self._matches(view))
        if keep is False:
            return None
        arrays = []
        for column in self._columns:
            if isinstance(column, ColumnReader):
                arrays.append(view.column(column))
                continue
            stored = None if column.reader is None else view.column(column.reader)
            arrays.append(column.values(batch, stored, deleted))
        rows = _record_batch(arrays, self._schema, batch.count)
        return rows if keep is True else rows.filter(keep)

    def _deleted(self, view: BatchView) -> npt.NDArray[np.bool_] | None:
        batch = view.batch
        deleted: npt.NDArray[np.bool_] | None = None
        if self._positions is not None:
            begin, end = np.searchsorted(self._positions, (batch.first, batch.first + batch.count))
            if end > begin:
                deleted = np.zeros(batch.count, np.bool_)
                deleted[self._positions[begin:end] - batch.first] = True
        for group, readers in self._groups:
            columns = [
                key.values(view.column(reader))
                for key, reader in zip(group.columns, readers, strict=True)
            ]
            found = group.deleted(self._task, columns)
            if found is not None:
                deleted = found if deleted is None else deleted | found
        return deleted

    def _matches(self, view: BatchView) -> pa.Array | bool:
        if self._task.residual is ALWAYS_TRUE:
            return True

        def column_of(leaf: Leaf) -> tuple[pa.Array, IcebergType] | None:
            found = self._residual.get(leaf.term.field_id)
            if found is None or not evaluable(leaf, self._context.schema):
                return None
            key, reader = found
            return key.values(view.column(reader)), key.leaf.type

        return matching(self._task.residual, column_of)


def _record_batch(arrays: Sequence[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    # Rows without columns: only this way does Arrow keep their number.
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
