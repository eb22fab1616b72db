"""Files and tasks for the tests of ``read/``, made without ``scan`` or ``catalog``."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.name_mapping import NameMapping
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import LONG, NestedField
from icesql.read.task import read_task
from icesql.scan.tasks import CombinedScanTask, FileScanTask, ScanContext
from icesql.storage.open import Storage
from icesql.write.parquet_schema import parquet_schema
from tests.columns import columns as columns_of

# In the tests a schema is its columns, or the text of ``tests.columns``.
Columns = str | Sequence[NestedField]
_numbers = itertools.count()


def arrow_field(name: str, type: pa.DataType, field_id: int | None = None, **more: Any) -> pa.Field:
    """An Arrow field that Parquet writes with this field id."""
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, type, metadata=metadata, **more)


def column(field_id: int, name: str, type: Any = LONG, **more: Any) -> NestedField:
    return NestedField(field_id, name, type, **more)


def write_parquet(
    folder: Path,
    fields: str | Sequence[pa.Field],
    columns: Sequence[Any],
    *,
    rows_per_group: int | None = None,
    **more: Any,
) -> str:
    """A Parquet file of these columns; its path."""
    is_text = isinstance(fields, str)
    schema = parquet_schema(schema_of(fields)) if is_text else pa.schema(fields)
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values, each.type)
        for values, each in zip(columns, schema, strict=True)
    ]
    path = folder / f"file{next(_numbers)}.parquet"
    table = pa.Table.from_arrays(arrays, schema=schema)
    with pq.ParquetWriter(path, schema, **more) as writer:
        writer.write_table(table, row_group_size=rows_per_group)
    return str(path)


def data_file(path: str, **more: Any) -> DataFile:
    """A data file of the manifest for a file on disk; counts come from the footer."""
    file_format = more.pop("file_format", "PARQUET")
    count = more.pop("record_count", None)
    if count is None:
        count = pq.read_metadata(path).num_rows if file_format == "PARQUET" else -1
    return DataFile(
        content=more.pop("content", FileContent.DATA),
        path=path,
        file_format=file_format,
        spec_id=more.pop("spec_id", 0),
        partition=more.pop("partition", ()),
        record_count=count,
        file_size_in_bytes=more.pop("file_size_in_bytes", Path(path).stat().st_size),
        **more,
    )


def schema_of(columns: Columns) -> Schema:
    return Schema(columns_of(columns) if isinstance(columns, str) else tuple(columns))


def context(
    columns: Columns,
    *,
    projection: Columns | None = None,
    file_columns: Columns | None = None,
    specs: Mapping[int, PartitionSpec] | None = None,
    name_mapping: NameMapping | None = None,
) -> ScanContext:
    return ScanContext(
        table="t",
        schema=schema_of(columns),
        projection=schema_of(columns if projection is None else projection),
        file_schema=schema_of(columns if file_columns is None else file_columns),
        specs=specs or {0: PartitionSpec()},
        storage=Storage(),
        name_mapping=name_mapping,
    )


def whole(
    file: DataFile, deletes: Iterable[DataFile] = (), residual: Predicate = ALWAYS_TRUE
) -> FileScanTask:
    return FileScanTask(file, 0, file.file_size_in_bytes, tuple(deletes), residual)


def task_of(scan: ScanContext | Columns, *files: FileScanTask | DataFile | str) -> CombinedScanTask:
    """The task of tasks, or of whole files."""
    found = [data_file(each) if isinstance(each, str) else each for each in files]
    tasks = tuple(whole(each) if isinstance(each, DataFile) else each for each in found)
    return CombinedScanTask(tasks, scan if isinstance(scan, ScanContext) else context(scan))


def rows(scan: Any, *files: Any, query: QueryContext | None = None) -> list[dict[str, Any]]:
    """All rows of ``task_of``, in reading order."""
    return [row for batch in read_task(task_of(scan, *files), query) for row in batch.to_pylist()]


def values(scan: Any, *files: Any) -> list[Any]:
    """The values of the only column."""
    return [value for row in rows(scan, *files) for value in row.values()]


def numbers(scan: Any, *files: Any) -> list[list[int]]:
    """The columns of the only batch as the numbers that it has for them."""
    (batch,) = read_task(task_of(scan, *files))
    return [each.view(pa.int64()).to_pylist() for each in batch.columns]


def position_deletes(folder: Path, deletes: Sequence[tuple[str, int]], **more: Any) -> DataFile:
    """A position delete file in Parquet."""
    path = write_parquet(
        folder,
        "2147483546 file_path string, 2147483545 pos long",
        [[path for path, _ in deletes], [position for _, position in deletes]],
    )
    return data_file(path, content=FileContent.POSITION_DELETES, **more)


def equality_deletes(
    folder: Path,
    fields: str,
    columns: Sequence[Any],
    ids: Sequence[int] | None = None,
    *,
    sequence_number: int | None = 1,
    **more: Any,
) -> DataFile:
    """An equality delete file in Parquet, by all of its columns unless ``ids`` names some."""
    path = write_parquet(folder, fields, columns)
    if ids is None:
        ids = [each.field_id for each in schema_of(fields).fields]
    return data_file(
        path, content=FileContent.EQUALITY_DELETES, equality_ids=tuple(ids),
        sequence_number=sequence_number, **more,
    )  # fmt: skip


def facts(numbers: Sequence[int]) -> dict[str, Any]:
    """Metrics of a file whose column 1 has these numbers."""
    least, greatest = (struct.pack("<q", each) for each in (min(numbers), max(numbers)))
    return {
        "value_counts": {1: len(numbers)}, "null_value_counts": {1: 0},
        "lower_bounds": {1: least}, "upper_bounds": {1: greatest},
    }  # fmt: skip


def leaf(operation: Operation, field_id: int, literal: Any = None, name: str = "c") -> Leaf:
    return Leaf(operation, Term(field_id, name), literal)
