"""The rows of a metadata table as Arrow; those of ``position_deletes`` from the delete files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from icesql.context import QueryContext
from icesql.errors import UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.schema import DELETE_FILE_PATH, DELETE_POS, Schema
from icesql.read.columns.arrow_schema import (
    arrow_schema,
    arrow_type,
    column_of,
    one_value,
    repeated,
)
from icesql.read.deletes.scan_deletes import stored_columns
from icesql.scan.deletes.vectors import read_vector
from icesql.scan.metadata_tables.rows import MetadataRows, PositionDeleteFile
from icesql.scan.metadata_tables.schemas import stored_row
from icesql.scan.tasks import ScanContext
from icesql.storage.credentials import redact_urls

# Source: Iceberg spec, "Reserved Field IDs".
_ROW_ID: Final = 2147483544
_BATCH_ROWS: Final = 4096


def metadata_table(rows: MetadataRows, context: ScanContext, query: QueryContext) -> pa.Table:
    """The rows with the columns of ``rows.schema``, called ``c<field id>``.

    Raises CorruptFileError, StorageError and UnsupportedTableError about a manifest or delete file.
    """
    fields, schema = rows.schema.fields, arrow_schema(rows.schema)
    if rows.delete_files:
        batches = _of_delete_files(rows, context, query)
    elif fields:
        batches = _in_batches(rows, schema)
    else:
        return pa.table({"none": pa.nulls(sum(1 for _ in rows.rows))})
    table = pa.Table.from_batches(batches, schema)
    return table.rename_columns([f"c{column.field_id}" for column in fields])


def _of_delete_files(
    rows: MetadataRows, context: ScanContext, query: QueryContext
) -> Iterator[pa.RecordBatch]:
    for each in rows.delete_files:
        query.check()
        yield from _deletes(each, rows.schema, context)


def _in_batches(rows: MetadataRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as Python has them take ten times the memory: there are never many."""
    left = iter(rows.rows)
    while part := list(islice(left, _BATCH_ROWS)):
        try:
            arrays = [
                column_of([row[index] for row in part], column.type)
                for index, column in enumerate(rows.schema.fields)
            ]
        except OverflowError as error:  # ids of some writers have 128 bits
            raise UnsupportedTableError("metadata with numbers of more than 64 bits") from error
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _deletes(
    found: PositionDeleteFile, schema: Schema, context: ScanContext
) -> Iterator[pa.RecordBatch]:
    """The deleted rows that one delete file names, as batches of ``schema``."""
    file = found.file
    row = schema.find_column("row")
    parts = _of_vector(file, context) if file.is_deletion_vector else _of_file(file, row, context)
    constants = {
        "partition": found.partition,
        "spec_id": file.spec_id,
        "delete_file_path": redact_urls(file.path),
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }
    for paths, positions, rows in parts:
        arrays = []
        for column in schema.fields:
            match column.name:
                case "file_path":
                    arrays.append(paths)
                case "pos":
                    arrays.append(positions)
                case "row":
                    kind = arrow_type(column.type)
                    arrays.append(pa.nulls(len(paths), kind) if rows is None else rows.cast(kind))
                case name:
                    arrays.append(repeated(one_value(constants[name], column.type), len(paths)))
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _of_vector(file: DataFile, context: ScanContext) -> Iterator[tuple[Any, Any, Any]]:
    positions = pa.array(read_vector(file, context.storage, context.table), pa.int64())
    path = one_value(file.referenced_data_file, t.STRING)
    yield repeated(path, len(positions)), positions, None


def _of_file(
    file: DataFile, row: t.NestedField | None, context: ScanContext
) -> Iterator[tuple[Any, Any, Any]]:
    columns = [DELETE_FILE_PATH, DELETE_POS]
    if row is not None:
        columns.append(t.NestedField(_ROW_ID, "row", stored_row(row.type)))
    for arrays in stored_columns(file, Schema(tuple(columns)), context):
        yield arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None
