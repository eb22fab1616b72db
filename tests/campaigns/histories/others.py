"""Other writers: one that writes like Flink, and PyIceberg."""

from __future__ import annotations

import os
import struct
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icesql.commit.rows import commit_row_delta
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile, FileContent

# ------------------------------------------------------------------ like Flink


def equality_delete(
    catalog: Any, table: Any, ids: list[int], *, field: int, partition: tuple[Any, ...] = (),
    rows: list[dict[int, Any]] | None = None, spec_id: int | None = None,
) -> None:  # fmt: skip
    """Delete all older rows with these values of a column, and add ``rows`` by field id."""
    metadata = table.metadata
    spec_id = metadata.default_spec_id if spec_id is None else spec_id
    made = [_equality_file(metadata, spec_id, ids, field, partition)]
    data = [_data_file(metadata, spec_id, rows, partition)] if rows else []
    commit_row_delta(
        catalog, table, added=data, deletes=made, start_id=metadata.current_snapshot_id,
        command="delete", query=QueryContext(),
    )  # fmt: skip


def _equality_file(
    metadata: Any, spec_id: int, ids: list[int], field: int, partition: tuple[Any, ...]
) -> DataFile:
    path = f"{_folder(metadata)}/{uuid.uuid4()}-equality.parquet"
    name = metadata.schema.field_by_id[field].name
    column = pa.field(name, pa.int64(), False, metadata={b"PARQUET:field_id": str(field).encode()})
    pq.write_table(pa.table({name: pa.array(ids, pa.int64())}, schema=pa.schema([column])), path)
    low, high = (struct.pack("<q", each) for each in (min(ids), max(ids)))
    return DataFile(
        FileContent.EQUALITY_DELETES, path, "PARQUET", spec_id, partition, len(ids),
        os.path.getsize(path), value_counts={field: len(ids)}, null_value_counts={field: 0},
        lower_bounds={field: low}, upper_bounds={field: high}, equality_ids=(field,),
    )  # fmt: skip


_ARROW = {"long": pa.int64(), "int": pa.int32(), "string": pa.string()}


def _data_file(
    metadata: Any, spec_id: int, rows: list[dict[int, Any]], partition: tuple[Any, ...]
) -> DataFile:
    path = f"{_folder(metadata)}/{uuid.uuid4()}-rows.parquet"
    fields, columns = [], []
    for each in metadata.schema.fields:
        if each.field_id not in rows[0]:
            continue
        kind = _ARROW[str(each.type)]
        told = {b"PARQUET:field_id": str(each.field_id).encode()}
        fields.append(pa.field(each.name, kind, True, metadata=told))
        columns.append(pa.array([row[each.field_id] for row in rows], kind))
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    return DataFile(
        FileContent.DATA, path, "PARQUET", spec_id, partition, len(rows), os.path.getsize(path)
    )


def _folder(metadata: Any) -> str:
    place = f"{metadata.location.removeprefix('file://')}/data"
    os.makedirs(place, exist_ok=True)
    return place


def planned(table: Any) -> dict[str, Any]:
    """The tasks of a scan of the whole table, by path of their files."""
    from icesql.scan.plan import TableScan
    from icesql.scan.planner import plan

    schema, snapshot = table.metadata.schema, table.metadata.current_snapshot
    found = plan(TableScan(table, snapshot, schema, schema), QueryContext())
    return {task.data_file.path: task for task in found.files}


def position_delete(catalog: Any, table: Any, rows: list[tuple[str, int]]) -> bool:
    """Delete rows by file and position, with vectors in version 3; return whether it was possible.

    A file that has a vector already would need a merged one, which this writer does not write.
    """
    import numpy as np

    from icesql.write.deletes import write_deletes

    metadata, files, made = table.metadata, planned(table), []
    for path in sorted({each for each, _ in rows}):
        task, own = files[path], [number for each, number in rows if each == path]
        older = [each for each in task.deletes if each.content is FileContent.POSITION_DELETES]
        if metadata.format_version > 2 and older:
            return False
        deleted = [(task.data_file, np.unique(own))]
        made.append(write_deletes(metadata, table.storage, deleted))
    commit_row_delta(
        catalog, table, deletes=made, referenced=sorted({each for each, _ in rows}),
        start_id=metadata.current_snapshot_id, command="delete", query=QueryContext(),
    )  # fmt: skip
    return True


# ------------------------------------------------------------------ PyIceberg


class PyIceberg:
    """PyIceberg's catalog beside the others; it has none for folders, and writes no version 3."""

    def __init__(self, warehouse: Any) -> None:
        from pyiceberg.catalog import load_catalog

        if warehouse.kind == "sqlite":
            given = {"type": "sql", "uri": f"sqlite:///{warehouse.database}"}
            self._catalog = load_catalog("c", warehouse=str(warehouse.warehouse), **given)
        else:
            self._catalog = load_catalog("c", type="rest", uri=warehouse.front.uri)

    def append(self, namespace: str, name: str, rows: list[dict[str, Any]]) -> None:
        """Add rows by the names of their columns."""
        table = self._catalog.load_table((namespace, name))
        table.append(_arrow(table, rows))

    def overwrite(self, namespace: str, name: str, rows: list[dict[str, Any]], filter: str) -> None:
        """Replace the rows that a condition matches."""
        table = self._catalog.load_table((namespace, name))
        table.overwrite(_arrow(table, rows), overwrite_filter=filter)

    def delete(self, namespace: str, name: str, filter: str) -> None:
        """Delete rows by rewriting their files."""
        self._catalog.load_table((namespace, name)).delete(filter)

    def close(self) -> None:
        """Close its connections."""
        self._catalog.close()


def _arrow(table: Any, rows: list[dict[str, Any]]) -> pa.Table:
    schema = table.schema().as_arrow()
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in schema} for row in rows], schema=schema
    )


def rows_by_pyiceberg(place: str, snapshot_id: int | None = None) -> list[tuple[Any, ...]]:
    """The rows of a table by its metadata file."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(place).scan(snapshot_id=snapshot_id).to_arrow()
    return [tuple(each.values()) for each in table.to_pylist()]


def emptied(value: Any) -> Any:
    """A value as PyIceberg 0.12 reads it: a NULL list is an empty one."""
    match value:
        case dict():
            return {key: emptied(each) for key, each in value.items()}
        case tuple():
            return tuple(map(emptied, value))
        case list():
            return [emptied(each) for each in value] or None
    return value
