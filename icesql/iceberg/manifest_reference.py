"""Manifests decoded by fastavro: slower than ``manifest_decoder``, and what that is held to."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from icesql.errors import CorruptFileError
from icesql.iceberg import manifest_schema as known
from icesql.iceberg.avro_file import AvroFile, BadAvro
from icesql.iceberg.avro_reader import compile_reader
from icesql.iceberg.avro_schema import (
    AvroNode,
    OddSchema,
    parse_avro_schema,
    without_logical_types,
)
from icesql.iceberg.manifest_columns import ManifestColumns
from icesql.iceberg.manifest_entries import PlainMaps
from icesql.iceberg.partition_values import Convert, partition_converter
from icesql.iceberg.types import IcebergType

# What fastavro raises on bytes or schemas that are not right; it has no error of its own for them.
_FOREIGN = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    StopIteration,
    AssertionError,
)


def read_with_fastavro(
    file: AvroFile,
    partition_types: Sequence[IcebergType],
    partition_field_ids: tuple[int, ...] | None = None,
) -> ManifestColumns:
    """The columns of a manifest. Raises CorruptFileError."""
    try:
        schema, json = parse_avro_schema(file.schema)
        compile_reader(schema)  # refuses what could make fastavro count for ever
        rows = _rows(file, json)
        return _columns(rows, schema, partition_types, partition_field_ids)
    except (BadAvro, OddSchema, TypeError, ValueError, AttributeError, KeyError) as error:
        raise CorruptFileError(file.path, f"not a manifest: {error}") from error


def _rows(file: AvroFile, json: Any) -> list[dict[str, Any]]:
    import fastavro
    from fastavro.schema import SchemaParseException

    rows: list[dict[str, Any]] = []
    start = 0
    for count, end, offset in file.blocks:
        stream = io.BytesIO(file.data[start:end])
        try:
            schema = fastavro.parse_schema(without_logical_types(json), _force=True)
            for _ in range(count):
                if stream.tell() >= end - start:
                    raise BadAvro("a block ends early")
                rows.append(fastavro.schemaless_reader(stream, schema, None))  # type: ignore
        except (*_FOREIGN, SchemaParseException) as error:
            raise CorruptFileError(
                file.path, f"bad Avro block: {error or type(error).__name__}", offset=offset
            ) from error
        if stream.tell() != end - start:
            raise CorruptFileError(file.path, "an Avro block has bytes left over", offset=offset)
        start = end
    return rows


def _columns(
    rows: Sequence[Mapping[str, Any]],
    schema: AvroNode,
    partition_types: Sequence[IcebergType],
    partition_field_ids: tuple[int, ...] | None,
) -> ManifestColumns:
    entry = known.by_field_id(schema, known.ENTRY_NAMES)
    if known.STATUS not in entry or known.DATA_FILE not in entry:
        raise OddSchema("entries without status or data_file")
    file = known.by_field_id(entry[known.DATA_FILE].node, known.FILE_NAMES)
    for needed in (known.FILE_PATH, known.FILE_FORMAT, known.RECORD_COUNT, known.FILE_SIZE):
        if needed not in file:
            raise OddSchema(f"data files without field {needed}")
    files = [row[entry[known.DATA_FILE].name] for row in rows]

    def of_entry(field_id: int, default: Any = None) -> list[Any]:
        if field_id not in entry:
            return [default] * len(rows)
        return [_checked(row[entry[field_id].name], int | None) for row in rows]

    def of_file(field_id: int, kind: Any, default: Any = None) -> list[Any]:
        if field_id not in file:
            return [default] * len(rows)
        return [_checked(each[file[field_id].name], kind) for each in files]

    columns = ManifestColumns(
        status=[_checked(each, int) for each in of_entry(known.STATUS)],
        snapshot_id=of_entry(known.SNAPSHOT_ID),
        sequence_number=of_entry(known.SEQUENCE_NUMBER),
        file_sequence_number=of_entry(known.FILE_SEQUENCE_NUMBER),
        content=[each or 0 for each in of_file(known.CONTENT, int | None)],
        path=of_file(known.FILE_PATH, str),
        file_format=of_file(known.FILE_FORMAT, str),
        partition=_partitions(files, file, partition_types, partition_field_ids),
        record_count=of_file(known.RECORD_COUNT, int),
        file_size_in_bytes=of_file(known.FILE_SIZE, int),
    )
    for field_id, name in (known.COUNT_MAPS | known.BOUND_MAPS).items():
        if field_id in file:
            value = bytes if field_id in known.BOUND_MAPS else int
            maps = of_file(field_id, list | None)
            key, item = known.pair_fields(file[field_id].node)
            columns.maps[name] = PlainMaps(
                [_map(each, key.name, item.name, value) for each in maps]
            )
    for field_id, name in known.RARE.items():
        columns.rare[name] = {
            index: tuple(each) if isinstance(each, list) else each
            for index, each in enumerate(of_file(field_id, int | bytes | str | list | None))
            if each is not None
        }
    return columns


def _checked(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} where {kind} belongs")
    return value


def _map(
    pairs: list[Mapping[str, Any]] | None, key: str, value: str, kind: type
) -> dict[int, Any] | None:
    if pairs is None:
        return None
    return {_checked(pair[key], int): _checked(pair[value], kind) for pair in pairs}


def _partitions(
    files: Sequence[Mapping[str, Any]],
    file: Mapping[int, Any],
    types: Sequence[IcebergType],
    field_ids: tuple[int, ...] | None,
) -> list[tuple[Any, ...]]:
    if known.PARTITION not in file:
        if types:
            raise OddSchema("data files without partition")
        return [()] * len(files)
    name = file[known.PARTITION].name
    stored = known.partition_fields(file[known.PARTITION].node, field_ids, len(types))
    steps: list[tuple[str, Convert | None]] = []
    for each, type_ in zip(stored, types, strict=True):
        node = each.node.non_null
        if node is None:
            raise OddSchema(f"partition value {each.name!r} of an unusual union")
        steps.append((each.name, partition_converter(node, type_)))
    return [tuple(_value(row[name], *step) for step in steps) for row in files]


def _value(row: Mapping[str, Any], name: str, convert: Convert | None) -> Any:
    value = row[name]
    return value if value is None or convert is None else convert(value)
