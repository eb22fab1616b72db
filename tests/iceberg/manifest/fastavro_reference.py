"""Manifests decoded by fastavro, container and values: the reference for icesql's readers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from icesql.iceberg.avro.schema import AvroField, AvroNode, parse_avro_schema, without_logical_types
from icesql.iceberg.manifest import schema as known
from icesql.iceberg.manifest.entries import ManifestColumns, PlainMaps
from icesql.iceberg.manifest.partition_values import partition_converter
from icesql.iceberg.types import IcebergType

Node = dict[str, Any]
_COLUMNS = (
    known.FILE_PATH,
    known.FILE_FORMAT,
    known.PARTITION,
    known.RECORD_COUNT,
    known.FILE_SIZE,
)


def read_with_fastavro(data: bytes, types: Sequence[IcebergType]) -> ManifestColumns:
    reader = fastavro.reader(io.BytesIO(data))
    written = json.loads(reader.metadata["avro.schema"])
    plain = fastavro.parse_schema(without_logical_types(written), _force=True)
    rows: list[Any] = []
    for block in fastavro.block_reader(io.BytesIO(data)):
        stream = block.bytes_
        rows += (fastavro.schemaless_reader(stream, plain, None) for _ in range(block.num_records))
    return _columns(rows, parse_avro_schema(json.dumps(written).encode()), types)


def _columns(rows: list[Node], schema: AvroNode, types: Sequence[IcebergType]) -> ManifestColumns:
    entry = known.entry_fields(schema)
    file = known.file_fields(entry[known.DATA_FILE].node)
    files = _values(rows, entry, known.DATA_FILE)
    ids = (known.STATUS, known.SNAPSHOT_ID, known.SEQUENCE_NUMBER, known.FILE_SEQUENCE_NUMBER)
    contents = [each or 0 for each in _values(files, file, known.CONTENT)]
    path, file_format, partition, counts, sizes = (_values(files, file, each) for each in _COLUMNS)
    partition_fields = known.fields_of(file[known.PARTITION].node)
    maps: Any = {
        name: PlainMaps([_map(each, field_id, file) for each in _values(files, file, field_id)])
        for field_id, name in (known.COUNT_MAPS | known.BOUND_MAPS).items()
        if field_id in file
    }
    rare: Any = {
        name: {
            index: tuple(each) if isinstance(each, list) else each
            for index, each in enumerate(_values(files, file, field_id))
            if each is not None
        }
        for field_id, name in known.RARE.items()
    }
    return ManifestColumns(
        *(_values(rows, entry, each) for each in ids),
        contents,
        path,
        file_format,
        [_partition(row, partition_fields, types) for row in partition],
        [-1 if each is None else each for each in counts],
        sizes,
        maps,
        rare,
    )


def _values(rows: list[Node], fields: Any, field_id: int) -> list[Any]:
    return [row[fields[field_id].name] if field_id in fields else None for row in rows]


def _map(pairs: list[Node] | None, field_id: int, file: Any) -> Any:
    key, value = known.pair_fields(file[field_id].node)
    return None if pairs is None else {each[key.name]: each[value.name] for each in pairs}


def _partition(row: Node, fields: Sequence[AvroField], types: Sequence[IcebergType]) -> Any:
    found = []
    for each, type_ in zip(fields, types, strict=True):
        convert = partition_converter(each.node.branches[0], type_)
        value = row[each.name]
        found.append(value if value is None or convert is None else convert(value))
    return tuple(found)
