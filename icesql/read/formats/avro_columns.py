"""Avro writer schemas as file fields, and columns of decoded records as Arrow arrays.

Logical types are removed from the schema before decoding, so that values are the stored integers
and bytes: dates beyond year 9999 survive, and nothing is rounded. Source: Iceberg spec, "Avro";
Avro 1.12 specification.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from icesql.errors import UnsupportedTableError
from icesql.iceberg.avro.schema import AvroNode, OddSchema, parse_avro_schema
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.read.columns.values import offsets
from icesql.read.formats.decode_errors import decoding
from icesql.read.formats.file_fields import FileField

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_NULL: Final = pa.null()
_PAIR: Final = ["key", "value"]


class BadSchema(ValueError):
    """JSON that is not an Avro schema."""


class AvroColumn(Struct, frozen=True):
    """A type of the writer schema; ``children`` as those of ``FileField``.

    ``kind`` is Avro's name of it, "map-array" for arrays that spell a map, or "union" for a
    union that is more than an optional.
    """

    kind: str
    type: pa.DataType
    logical: str | None = None
    children: tuple[tuple[str, int | None, AvroColumn], ...] = ()


def avro_record(schema: bytes) -> AvroColumn:
    """The columns of a writer schema (JSON). Raises BadSchema."""
    try:
        record = _column(parse_avro_schema(schema))
    except (Malformed, OddSchema) as error:
        raise BadSchema(str(error)) from error
    if record.kind != "record":
        raise BadSchema(f"rows are {record.kind}, not records")
    return record


def file_fields(record: AvroColumn) -> tuple[FileField, ...]:
    """The fields of a record as the common tree of all formats."""
    return tuple(
        FileField(index, name, child.type, field_id, file_fields(child))
        for index, (name, field_id, child) in enumerate(record.children)
    )


def _column(node: AvroNode) -> AvroColumn:
    match node.kind:
        case "union":
            parsed = [_column(each) for each in node.branches]
            kind = "union" if parsed else "null"
            return parsed[0] if len(parsed) == 1 else AvroColumn(kind, _NULL)
        case "record":
            children = tuple((each.name, each.field_id, _column(each.node)) for each in node.fields)
            struct = pa.struct([pa.field(name, child.type) for name, _, child in children])
            return AvroColumn("record", struct, children=children)
        case "array":
            element = _column(node.items[0])
            if node.logical == "map" and [name for name, _, _ in element.children] == _PAIR:
                key, value = element.children
                type = pa.map_(key[2].type, value[2].type)
                return AvroColumn("map-array", type, children=(key, value))
            children = (("element", node.ids[0], element),)
            return AvroColumn("array", pa.list_(element.type), children=children)
        case "map":
            parts = AvroColumn("string", pa.string()), _column(node.items[0])
            children = tuple(zip(_PAIR, node.ids, parts, strict=True))
            return AvroColumn("map", pa.map_(*(each.type for each in parts)), children=children)
        case _:
            return _leaf(node)


def _leaf(node: AvroNode) -> AvroColumn:
    kind, logical = node.kind, node.logical
    stored = pa.binary(node.size) if kind == "fixed" else _PLAIN[kind]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        if not 1 <= node.precision <= 38:
            raise BadSchema("decimal without a precision from 1 to 38")
        return AvroColumn(kind, pa.decimal128(node.precision, node.scale), "decimal")
    if logical == "uuid" and kind == "string":
        return AvroColumn(kind, pa.binary(16), "uuid")
    return AvroColumn(kind, _LOGICAL.get((kind, str(logical)), stored))


def avro_array(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    """Decoded values (None for NULL) as an array of the column's type.

    Raises CorruptFileError for values that the type cannot hold, UnsupportedTableError for a
    union of several types.
    """
    match column.kind:
        case "union":
            raise UnsupportedTableError("an Avro union of several types", path=path)
        case "record":
            return _struct(column, values, path)
        case "array":
            listed = [item for value in values for item in value or ()]
            items = avro_array(column.children[0][2], listed, path)
            return pa.ListArray.from_arrays(offsets(values), items, type=column.type)
        case "map" | "map-array":
            if column.kind == "map":
                pairs = [pair for value in values for pair in (value or {}).items()]
            else:
                pairs = [(each["key"], each["value"]) for value in values for each in value or ()]
            parts = (
                avro_array(child, [pair[place] for pair in pairs], path)
                for place, (_, _, child) in enumerate(column.children)
            )
            return pa.MapArray.from_arrays(offsets(values), *parts, type=column.type)
        case _:
            return _leaf_array(column, values, path)


def _leaf_array(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    with decoding(path):
        if column.logical == "decimal":
            return _decimals(column.type, values)
        if column.logical == "uuid":
            raw = [None if value is None else uuid.UUID(value).bytes for value in values]
            return pa.array(raw, pa.binary(16))
        if pa.types.is_temporal(column.type):
            width = pa.int32() if column.type.bit_width == 32 else pa.int64()
            return pa.array(values, width).view(column.type)
        return pa.array(values, column.type)


def _decimals(type: pa.DataType, values: Sequence[Any]) -> pa.Array:
    raw = [
        None
        if value is None
        else int.from_bytes(value, "big", signed=True).to_bytes(16, "little", signed=True)
        for value in values
    ]
    return pa.array(raw, pa.binary(16)).view(type)


def _struct(column: AvroColumn, values: Sequence[Any], path: str) -> pa.Array:
    if not column.children:
        return pa.array(values, column.type)
    children = [
        avro_array(child, [None if value is None else value[name] for value in values], path)
        for name, _, child in column.children
    ]
    return pa.StructArray.from_arrays(children, fields=list(column.type), mask=_mask(values))


def _mask(values: Sequence[Any]) -> pa.Array | None:
    if None not in values:
        return None
    return pa.array([value is None for value in values], pa.bool_())
