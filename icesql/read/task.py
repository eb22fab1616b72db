"""Read scan tasks: live rows of a task as Arrow record batches, its residual applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.context import QueryContext
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
    leaves,
)
from icesql.iceberg.schema import DELETED, METADATA_IDS, Schema
from icesql.iceberg.types import IcebergType, NestedField
from icesql.read.ahead import ReadAhead
from icesql.read.columns.arrow_schema import arrow_schema, one_value, partition_constants, stored
from icesql.read.columns.projection import (
    BatchView,
    ColumnReader,
    MetadataColumn,
    column_reader,
    metadata_column,
    sources,
)
from icesql.read.deletes.equality_keys import EqualityGroup, KeyColumn, leaf_column
from icesql.read.deletes.scan_deletes import DeleteRelations
from icesql.read.formats.open import open_reader
from icesql.read.formats.reader import FileBatch, FileReader
from icesql.scan.tasks import CombinedScanTask, FileScanTask, ScanContext

# ------------------------------------------------------------------ residuals
# Evaluate a residual exactly on Arrow arrays: SQL's WHERE under IEEE zeros, column by column.
#
# A leaf is false for NULL (IS NULL apart), comparisons are false for NaN, "<>" and NOT IN are true
# for it. A leaf that names a transform is taken as true: the engine filters again.


_UNORDERED = (t.VariantType, t.GeometryType, t.GeographyType)


def evaluable(leaf: Leaf, schema: Schema) -> bool:
    """Whether a leaf can be decided on a column: an identity term outside lists and maps."""
    field_id = leaf.term.field_id
    if leaf.term.transform != "identity" or field_id not in schema.field_by_id:
        return False
    if schema.inside_repeated(field_id):
        return False
    type = schema.type_of(field_id)
    if leaf.operation in (Operation.IS_NULL, Operation.NOT_NULL):
        return True
    return isinstance(type, t.PrimitiveType) and not isinstance(type, _UNORDERED)


def matching(
    predicate: Predicate, column_of: Callable[[Leaf], tuple[pa.Array, t.IcebergType] | None]
) -> pa.Array | bool:
    """Which rows satisfy ``predicate``: a Boolean array without nulls, or one answer for all.

    ``column_of`` gives the column that a leaf names, None when the leaf cannot be decided.
    """
    match predicate:
        case And(left, right):
            return both(matching(left, column_of), matching(right, column_of))
        case Or(left, right):
            return _either(matching(left, column_of), matching(right, column_of))
        case Leaf():
            found = column_of(predicate)
            return True if found is None else _leaf(predicate, *found)
        case _:
            return predicate is ALWAYS_TRUE


def both(left: pa.Array | bool, right: pa.Array | bool) -> pa.Array | bool:
    """The rows of two masks, where True and False mean all rows and none."""
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return pc.and_(left, right)


def _either(left: pa.Array | bool, right: pa.Array | bool) -> pa.Array | bool:
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return pc.or_(left, right)


def _leaf(leaf: Leaf, array: pa.Array, type: t.IcebergType) -> pa.Array | bool:
    if isinstance(type, t.UnknownType):
        return leaf.operation is Operation.IS_NULL
    if isinstance(type, t.UUIDType):
        array = array.storage
    elif isinstance(type, t.FixedType) and not _fits(leaf.literal, type.length):
        # Bytes of another length are compared as bytes, and no fixed array can hold them.
        array, type = array.cast(pa.binary()), t.BinaryType()
    match leaf.operation:
        case Operation.IS_NULL:
            return array.is_null()
        case Operation.NOT_NULL:
            return array.is_valid()
        case Operation.IS_NAN | Operation.NOT_NAN:
            is_nan = leaf.operation is Operation.IS_NAN
            if not t.is_floating(type):
                return False if is_nan else array.is_valid()
            nan = pc.is_nan(array)
            return _known(nan if is_nan else pc.invert(nan))
        case Operation.IN:
            return _among(leaf, array, type)
        case Operation.NOT_IN:
            return pc.and_(array.is_valid(), pc.invert(_among(leaf, array, type)))
        case Operation.STARTS_WITH:
            return _known(_starts_with(array, leaf.literal))
        case Operation.NOT_STARTS_WITH:
            return _known(pc.invert(_starts_with(array, leaf.literal)))
        case _:
            return _known(_COMPARE[leaf.operation](array, _scalar(leaf.literal, type)))


_COMPARE: dict[Operation, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    Operation.LT: pc.less,
    Operation.LT_EQ: pc.less_equal,
    Operation.GT: pc.greater,
    Operation.GT_EQ: pc.greater_equal,
    Operation.EQ: pc.equal,
    Operation.NOT_EQ: pc.not_equal,
}


def _fits(literal: Any, length: int) -> bool:
    values = (literal,) if isinstance(literal, bytes) else literal or ()
    return all(len(value) == length for value in values)


def _among(leaf: Leaf, array: pa.Array, type: t.IcebergType) -> pa.Array:
    values = list(leaf.literal)
    if t.is_floating(type) and 0.0 in values:
        # Arrow's is_in compares bits, so both zeros are listed.
        values = [*(value for value in values if value != 0.0), 0.0, -0.0]
    literals = pa.concat_arrays([_stored(value, type) for value in values])
    return pc.is_in(array, value_set=literals, skip_nulls=True)


def _starts_with(array: pa.Array, prefix: Any) -> pa.Array:
    if isinstance(prefix, str):
        return pc.starts_with(array, prefix)
    return pc.equal(pc.binary_slice(array, 0, len(prefix)), pa.scalar(prefix, pa.binary()))


def _scalar(value: Any, type: t.IcebergType) -> pa.Scalar:
    return _stored(value, type)[0]


def _stored(value: Any, type: t.IcebergType) -> pa.Array:
    return stored(one_value(value, type))


def _known(answer: pa.Array) -> pa.Array:
    return answer.fill_null(False) if answer.null_count else answer


# ------------------------------------------------------------------ tasks


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
