"""Manifests decoded record by record: slower than ``compiled_walk``, and for every writer schema.

It reads every schema that resolves under Avro's rules, whatever unions it has: a value is judged by
its own type, not by the declared one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import (
    AvroNode,
    OddSchema,
    parse_avro_schema,
)
from icesql.iceberg.avro.values import BadAvro, Read, compile_reader
from icesql.iceberg.manifest import schema as known
from icesql.iceberg.manifest.columns import ManifestColumns
from icesql.iceberg.manifest.entries import PlainMaps
from icesql.iceberg.manifest.partition_values import (
    UNSTORED,
    Convert,
    PartitionFields,
    partition_converter,
)
from icesql.iceberg.types import IcebergType

_RARE_TYPES: Final = {
    "key_metadata": bytes,
    "split_offsets": list,
    "equality_ids": list,
    "referenced_data_file": str,
}
_PYTHON_TYPES: Final = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
}


def read_records(
    file: AvroFile,
    partition_types: Sequence[IcebergType],
    partition_fields: PartitionFields = None,
) -> ManifestColumns:
    """The columns of a manifest. Raises CorruptFileError."""
    try:
        schema = parse_avro_schema(file.schema)
        rows = _rows(file, compile_reader(_by_name(schema)))
        return record_columns(rows, schema, partition_types, partition_fields)
    except (BadAvro, OddSchema, TypeError, ValueError, AttributeError, KeyError) as error:
        raise CorruptFileError(file.path, f"not a manifest: {error}") from error


def _rows(file: AvroFile, read: Read) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    position = 0
    for count, end, offset in file.blocks:
        try:
            for _ in range(count):
                if position >= end:
                    raise BadAvro("a block ends early")
                row, position = read(file.data, position)
                rows.append(row)
            if position != end:
                raise BadAvro("a block does not end where its records end")
        except (IndexError, BadAvro, UnicodeDecodeError) as error:
            problem = "a block ends early" if isinstance(error, IndexError) else error
            raise CorruptFileError(
                file.path, f"bad Avro block: {problem}", offset=offset
            ) from error
    return rows


def _by_name(node: AvroNode) -> AvroNode:
    """The type without field ids: writers may use one twice in a partition, a name they may not."""
    return replace(
        node,
        fields=tuple(
            replace(each, field_id=None, node=_by_name(each.node)) for each in node.fields
        ),
        items=tuple(_by_name(each) for each in node.items),
    )


def record_columns(
    rows: Sequence[Mapping[str, Any]],
    schema: AvroNode,
    partition_types: Sequence[IcebergType],
    partition_fields: PartitionFields,
) -> ManifestColumns:
    """The columns of a manifest whose entries are dicts by name, logical types left as they are.

    Raises OddSchema, or TypeError, ValueError or BadAvro for a value that is not of its kind.
    """
    entry = known.by_field_id(schema, known.ENTRY_NAMES)
    if known.STATUS not in entry or known.DATA_FILE not in entry:
        raise OddSchema("entries without status or data_file")
    file = known.by_field_id(entry[known.DATA_FILE].node, known.FILE_NAMES)
    if missing := known.NEEDED - file.keys():
        raise OddSchema(f"data files without field {min(missing)}")
    files = [_typed(row[entry[known.DATA_FILE].name], dict) for row in rows]

    def of_entry(field_id: int) -> list[Any]:
        if field_id not in entry:
            return [None] * len(rows)
        return [_optional(row[entry[field_id].name], int) for row in rows]

    def of_file(field_id: int, kind: type) -> list[Any]:
        if field_id not in file:
            return [None] * len(rows)
        return [_optional(each[file[field_id].name], kind) for each in files]

    columns = ManifestColumns(
        status=_needed(of_entry(known.STATUS)),
        snapshot_id=of_entry(known.SNAPSHOT_ID),
        sequence_number=of_entry(known.SEQUENCE_NUMBER),
        file_sequence_number=of_entry(known.FILE_SEQUENCE_NUMBER),
        content=[each or 0 for each in of_file(known.CONTENT, int)],
        path=_needed(of_file(known.FILE_PATH, str)),
        file_format=_needed(of_file(known.FILE_FORMAT, str)),
        partition=_partitions(files, file, partition_types, partition_fields),
        record_count=[-1 if each is None else each for each in of_file(known.RECORD_COUNT, int)],
        file_size_in_bytes=_needed(of_file(known.FILE_SIZE, int)),
    )
    for field_id, name in (known.COUNT_MAPS | known.BOUND_MAPS).items():
        if field_id in file:
            value = bytes if field_id in known.BOUND_MAPS else int
            maps = of_file(field_id, list)
            key, item = known.pair_fields(file[field_id].node)
            columns.maps[name] = PlainMaps(
                [_map(each, key.name, item.name, value) for each in maps]
            )
    for field_id, name in known.RARE.items():
        columns.rare[name] = {
            index: tuple(_typed(item, int) for item in each) if isinstance(each, list) else each
            for index, each in enumerate(of_file(field_id, _RARE_TYPES.get(name, int)))
            if each is not None
        }
    return columns


def _needed(values: list[Any]) -> list[Any]:
    if None in values:
        raise TypeError("null where a value belongs")
    return values


def _optional(value: Any, kind: type) -> Any:
    return None if value is None else _typed(value, kind)


def _typed(value: Any, kind: type) -> Any:
    """``value`` as one of ``kind``; Avro allows strings and bytes for each other."""
    if kind is str and isinstance(value, bytes):
        return value.decode()
    if kind is bytes and isinstance(value, str):
        return value.encode()
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} where {kind.__name__} belongs")
    return value


def _map(
    pairs: list[Mapping[str, Any] | None] | None, key: str, value: str, kind: type
) -> dict[int, Any] | None:
    if pairs is None:
        return None
    return {
        _typed(pair[key], int): _typed(pair[value], kind)
        for pair in pairs
        if pair is not None and pair[key] is not None and pair[value] is not None
    }


def _partitions(
    files: Sequence[Mapping[str, Any]],
    file: Mapping[int, Any],
    types: Sequence[IcebergType],
    spec: PartitionFields,
) -> list[tuple[Any, ...]]:
    if known.PARTITION not in file:
        return [(UNSTORED,) * len(types)] * len(files)
    name = file[known.PARTITION].name
    stored = known.partition_fields(file[known.PARTITION].node, spec, len(types))
    steps = [
        (None, ()) if each is None else (each.name, _converters(each.node, type_))
        for each, type_ in zip(stored, types, strict=True)
    ]
    partitions = []
    for each in files:
        row = _optional(each[name], dict)
        partitions.append(
            tuple(
                UNSTORED if row is None or field is None else _value(row[field], converters)
                for field, converters in steps
            )
        )
    return partitions


Converters = Sequence[tuple[type, Convert | None]]


def _converters(node: AvroNode, type_: IcebergType) -> Converters:
    """Converters of a value by the Python type of each branch."""
    return [
        (_PYTHON_TYPES[each.kind], partition_converter(each, type_))
        for each in node.branches
        if each.kind in _PYTHON_TYPES
    ]


def _value(value: Any, converters: Converters) -> Any:
    if value is None:
        return None
    for kind, convert in converters:
        if type(value) is kind:
            return value if convert is None else convert(value)
    raise BadAvro(f"a partition value that is a {type(value).__name__}")
