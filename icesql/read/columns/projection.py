"""Build the columns of a scan: from the fields of a file, by field id, and metadata columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import CorruptFileError, TypeMismatchError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.schema import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SNAPSHOT_ID,
    SPEC_ID,
)
from icesql.iceberg.types import NestedField, StructType
from icesql.read.columns.arrow_schema import arrow_field, arrow_type, one_value, repeated
from icesql.read.columns.convert import ArrayReader, leaf_reader
from icesql.read.columns.variant import variant_reader
from icesql.read.formats.file_fields import FileField, is_list
from icesql.read.formats.reader import FileBatch, FileReader, converting
from icesql.scan.tasks import FileScanTask, ScanContext

Filler: TypeAlias = Callable[[int], pa.Array]


class ColumnReader(Frozen):
    """The reader of one table column from a file.

    ``source`` is the file's top-level field to read, None when ``fill(count)`` makes the column
    without the file; ``convert`` turns the field's array into the column.
    """

    column: t.NestedField
    source: FileField | None
    convert: ArrayReader | None
    fill: Filler | None

    def __call__(self, array: pa.Array | None, count: int) -> pa.Array:
        """The column of ``count`` rows; ``array`` is None when ``source`` is."""
        if self.convert is not None and array is not None:
            return self.convert(array)
        assert self.fill is not None
        return self.fill(count)


def column_reader(
    column: t.NestedField,
    fields: Sequence[FileField],
    constants: Mapping[int, Any],
    path: str,
    *,
    missing_is_null: bool = False,
) -> ColumnReader:
    """The reader of a top-level table column; ``constants`` are identity partition values by id.

    Raises CorruptFileError naming the file and the column when a required field has no source or
    the stored type cannot be read as the table's. ``missing_is_null`` is for files read by a name
    mapping, which ignores required columns: a column it does not name is NULL.
    """
    return _Builder(constants, path, missing_is_null).reader(column, fields, column.name)


def sources(readers: Iterable[ColumnReader | None]) -> list[FileField]:
    """The top-level fields that some readers need, each once, in the order of the file."""
    found = {each.source.index: each.source for each in readers if each and each.source}
    return [found[index] for index in sorted(found)]


def column_batches(
    opened: FileReader, readers: Sequence[ColumnReader], location: str
) -> Iterator[tuple[int, list[pa.Array]]]:
    """The rows of a file, batch by batch: their number, and a column for each reader."""
    wanted = sources(readers)
    for batch in opened.batches(wanted):
        view = BatchView(batch, wanted, location)
        yield batch.count, [view.column(each) for each in readers]


class BatchView:
    """The arrays of a batch by the top-level field they were read from."""

    def __init__(self, batch: FileBatch, wanted: Sequence[FileField], location: str) -> None:
        self.batch, self._location = batch, location
        self._arrays = {each.index: array for each, array in zip(wanted, batch.arrays, strict=True)}

    def column(self, reader: ColumnReader) -> pa.Array:
        """The column that a reader makes of the batch."""
        stored = None if reader.source is None else self._arrays[reader.source.index]
        with converting(self._location, reader.column.name):
            return reader(stored, self.batch.count)


class _Builder(Frozen):
    constants: Mapping[int, Any]
    path: str
    missing_is_null: bool

    def reader(self, column: t.NestedField, fields: Sequence[FileField], name: str) -> ColumnReader:
        """The reader of a column from the one of the fields that has its id."""
        source = next((each for each in fields if each.field_id == column.field_id), None)
        if source is None:
            return ColumnReader(column, None, None, self.absent(column, name))
        return ColumnReader(column, source, self.present(column, source, name), None)

    def absent(self, column: t.NestedField, name: str) -> Filler:
        """The column of a file that does not store it."""
        type = column.type
        if column.field_id in self.constants:
            return self._constant(self.constants[column.field_id], column, name)
        if isinstance(type, t.StructType) and self._holds_constant(column):
            # A partition value inside the struct proves that the struct is not null.
            fillers = [self.absent(child, f"{name}.{child.name}") for child in type.fields]
            return lambda count: _struct([fill(count) for fill in fillers], type, None, count)
        if column.initial_default is not t.MISSING:
            return self._constant(column.initial_default, column, name)
        if column.required and not self.missing_is_null:
            raise CorruptFileError(
                self.path,
                f'required column "{name}" (id {column.field_id}) is not in the file '
                "and has no default",
            )
        nulls = arrow_type(type)
        return lambda count: pa.nulls(count, nulls)

    def _holds_constant(self, column: t.NestedField) -> bool:
        return any(self.constants.get(child.field_id) is not None for child in t.walk((column,)))

    def _constant(self, value: Any, column: t.NestedField, name: str) -> Filler:
        try:
            single = one_value(value, column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise CorruptFileError(
                self.path, f'value {value!r} of column "{name}" is not a {column.type}: {error}'
            ) from error
        return lambda count: repeated(single, count)

    def present(self, column: t.NestedField, source: FileField, name: str) -> ArrayReader:
        """The column from the array of the file's field."""
        type = column.type
        reader: ArrayReader | None = None
        match type:
            case t.StructType() if pa.types.is_struct(source.type):
                reader = self._struct_reader(type, source, name)
            case t.ListType() if is_list(source.type):
                reader = self._repeated_reader(type, source, name)
            case t.MapType() if pa.types.is_map(source.type):
                reader = self._repeated_reader(type, source, name)
            case t.StructType() | t.ListType() | t.MapType():
                if pa.types.is_null(source.type):
                    nulls = arrow_type(type)
                    reader = lambda array: pa.nulls(len(array), nulls)  # noqa: E731
            case t.VariantType():
                reader = variant_reader(source.type, binary=type.binary)
            case _:
                reader = leaf_reader(source.type, type)
        if reader is None and self.missing_is_null:
            raise TypeMismatchError(
                f'column "{name}" cannot be read from {self.path}: the file has no field ids, and '
                f"by the table's name mapping the column is that of this name, which has the type "
                f"{source.type}, and not {type}. Drop the column, rewrite the file (CALL "
                "system.rewrite_data_files), and add the column again"
            )
        if reader is None:
            raise CorruptFileError(
                self.path,
                f'column "{name}" is stored as {source.type}, which cannot be read as {type}',
            )
        return reader

    def _struct_reader(self, type: t.StructType, source: FileField, name: str) -> ArrayReader:
        readers = [
            self.reader(child, source.children, f"{name}.{child.name}") for child in type.fields
        ]

        def read(array: pa.Array) -> pa.Array:
            children = [
                each(None if each.source is None else array.field(each.source.index), len(array))
                for each in readers
            ]
            return _struct(children, type, _mask(array), len(array))

        return read

    def _repeated_reader(
        self, type: t.ListType | t.MapType, source: FileField, name: str
    ) -> ArrayReader:
        """The lists or maps of a file, whose parts are elements, or keys and values."""
        converters = []
        for child, found in zip(t.children(type), source.children, strict=True):
            inner = f"{name}.{child.name}"
            if found.field_id not in (None, child.field_id):
                raise CorruptFileError(
                    self.path,
                    f'"{inner}" has field id {found.field_id} in the file, not {child.field_id}',
                )
            converters.append(self.present(child, found, inner))
        wanted = arrow_type(type)
        made = pa.ListArray if isinstance(type, t.ListType) else pa.MapArray

        def read(array: pa.Array) -> pa.Array:
            if made is pa.ListArray:
                array = _plain_list(array)
                stored = [array.values]
            else:
                stored = [array.keys, array.items]
            start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
            parts = [
                convert(each.slice(start, end - start))
                for convert, each in zip(converters, stored, strict=True)
            ]
            # Fresh offsets from zero: Arrow refuses a mask beside offsets that are a slice.
            offsets = pc.subtract(array.offsets, pa.scalar(start, array.offsets.type))
            return made.from_arrays(offsets, *parts, type=wanted, mask=_mask(array))

        return read


def _struct(
    children: list[pa.Array], type: t.StructType, mask: pa.Array | None, count: int
) -> pa.Array:
    if not children:
        nulls = mask.to_pylist() if mask is not None else [False] * count
        return pa.array([None if null else {} for null in nulls], pa.struct([]))
    fields = [arrow_field(child) for child in type.fields]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _plain_list(array: pa.Array) -> pa.Array:
    if pa.types.is_list(array.type):
        return array
    return array.cast(pa.list_(array.type.value_field))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


# ------------------------------------------------------------------ metadata columns
# Row lineage: a stored value wins row by row, else it is derived; both columns are NULL in a file
# without ``first_row_id``. Source: Iceberg spec, "Reserved Field IDs" and "Row Lineage".


Values = Callable[[FileBatch, "pa.Array | None", "npt.NDArray[np.bool_] | None"], pa.Array]


class MetadataColumn(Frozen):
    """One metadata column of one file; ``reader`` is the stored column it falls back from."""

    values: Values
    reader: ColumnReader | None = None


def metadata_column(
    column: NestedField,
    task: FileScanTask,
    context: ScanContext,
    reader: Callable[[NestedField], ColumnReader],
) -> MetadataColumn:
    """The source of a metadata column of the projection for the task's file."""
    file = task.data_file
    match column.field_id:
        case FILE.field_id:
            return _constant(file.path, column)
        case POS.field_id:
            return MetadataColumn(lambda batch, stored, deleted: _positions(batch))
        case DELETED.field_id:
            return MetadataColumn(_deleted)
        case SPEC_ID.field_id:
            return _constant(file.spec_id, column)
        case SNAPSHOT_ID.field_id:
            return _constant(file.snapshot_id, column)
        case ROW_ID.field_id:
            first_row_id = file.first_row_id
            if first_row_id is None:
                return _constant(None, column)
            return _stored_or(column, reader, lambda batch: pc.add(_positions(batch), first_row_id))
        case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            if file.first_row_id is None:
                return _constant(None, column)
            number = one_value(file.sequence_number, column.type)
            return _stored_or(column, reader, lambda batch: repeated(number, batch.count))
        case _:
            assert column.field_id == PARTITION_ID
            return _constant(_partition(task, context, column), column)


def _constant(value: Any, column: NestedField) -> MetadataColumn:
    single = one_value(value, column.type)
    return MetadataColumn(lambda batch, stored, deleted: repeated(single, batch.count))


def _stored_or(
    column: NestedField,
    reader: Callable[[NestedField], ColumnReader],
    derive: Callable[[FileBatch], pa.Array],
) -> MetadataColumn:
    def values(
        batch: FileBatch, stored: pa.Array | None, deleted: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        derived = derive(batch)
        return derived if stored is None else pc.coalesce(stored, derived)

    return MetadataColumn(values, reader(column))


def _positions(batch: FileBatch) -> pa.Array:
    return pa.array(np.arange(batch.first, batch.first + batch.count, dtype=np.int64))


def _deleted(
    batch: FileBatch, stored: pa.Array | None, deleted: npt.NDArray[np.bool_] | None
) -> pa.Array:
    return pa.array(np.zeros(batch.count, np.bool_) if deleted is None else deleted)


def _partition(
    task: FileScanTask, context: ScanContext, column: NestedField
) -> dict[int, Any] | None:
    """The file's partition values by partition field id; NULL for an unpartitioned table."""
    assert isinstance(column.type, StructType)
    if not column.type.fields:
        return None
    spec = context.specs[task.spec_id]
    return {
        each.field_id: None if value is UNSTORED else value
        for each, value in zip(spec.fields, task.data_file.partition, strict=False)
    }
