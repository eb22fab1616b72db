"""Iceberg types in their JSON form: Arrow schemas, Avro schemas and single-value bytes."""

from __future__ import annotations

import json
import re
import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.binary(16),
    "geometry": pa.binary(),
    "geography": pa.binary(),
    "unknown": pa.null(),
}
# Avro's schemas of the types that need no name of their own.
AVRO_TYPES = json.loads(Path(__file__).with_name("avro_types.json").read_text())


def decimal_of(type_):
    """(precision, scale) of "decimal(p, s)", None for other types."""
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", type_) if isinstance(type_, str) else None
    return (int(found[1]), int(found[2])) if found else None


def unscaled_of(value, scale):
    """The integer value * 10**scale, exact for any number of digits."""
    sign, digits, exponent = Decimal(value).as_tuple()
    number = int("".join(map(str, digits))) * 10 ** max(exponent + scale, 0)
    number //= 10 ** max(-exponent - scale, 0)
    return -number if sign else number


def decimal_from(unscaled, scale):
    """unscaled / 10**scale with exactly that scale."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def fixed_of(type_):
    """The length of "fixed[n]", None for other types."""
    found = re.fullmatch(r"fixed\[(\d+)\]", type_) if isinstance(type_, str) else None
    return int(found[1]) if found else None


def arrow_type(type_, ids=True):
    """The Arrow type of a JSON type, field ids as PARQUET:field_id unless ``ids`` is False."""
    if isinstance(type_, str):
        if decimal_of(type_):
            return pa.decimal128(*decimal_of(type_))
        if fixed_of(type_):
            return pa.binary(fixed_of(type_))
        return PRIMITIVES[type_]
    match type_["type"]:
        case "struct":
            return pa.struct([arrow_field(child, ids) for child in type_["fields"]])
        case "list":
            return pa.list_(_child("element", type_["element-id"], type_["element"], ids))
        case "map":
            return pa.map_(
                _child("key", type_["key-id"], type_["key"], ids, nullable=False),
                _child("value", type_["value-id"], type_["value"], ids),
            )
    raise AssertionError(type_)


def _child(name, field_id, type_, ids, nullable=True):
    metadata = {"PARQUET:field_id": str(field_id)} if ids else None
    return pa.field(name, arrow_type(type_, ids), nullable=nullable, metadata=metadata)


def arrow_field(field, ids=True):
    """The Arrow field of a JSON field, nullable whatever ``required`` says."""
    metadata = {"PARQUET:field_id": str(field["id"])} if ids else None
    return pa.field(field["name"], arrow_type(field["type"], ids), metadata=metadata)


def arrow_schema(fields, ids=True):
    """The Arrow schema of JSON fields; ``unknown`` columns are not stored."""
    return pa.schema([arrow_field(field, ids) for field in fields if field["type"] != "unknown"])


def single_value(type_, value):
    """The bytes of a bound. Dates and times as integers, decimals as Decimal, uuid as bytes."""
    if decimal_of(type_):
        unscaled = unscaled_of(value, decimal_of(type_)[1])
        length = max(1, (unscaled.bit_length() + 8) // 8)
        return unscaled.to_bytes(length, "big", signed=True)
    match type_:
        case "boolean":
            return b"\x01" if value else b"\x00"
        case "int" | "date":
            return struct.pack("<i", value)
        case "long" | "time" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return struct.pack("<q", value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "string":
            return value.encode()
        case _:
            return bytes(value)


def avro_type(type_, name):
    """The Avro schema of a JSON type, with the ids and logical types of the specification."""
    if isinstance(type_, str):
        if decimal_of(type_):
            precision, scale = decimal_of(type_)
            size = next(n for n in range(1, 17) if 10**precision < 2 ** (8 * n - 1))
            return {
                "type": "fixed",
                "name": f"decimal_{name}",
                "size": size,
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        if fixed_of(type_):
            return {"type": "fixed", "name": f"fixed_{name}", "size": fixed_of(type_)}
        if type_ == "uuid":
            return {"type": "fixed", "name": f"uuid_{name}", "size": 16, "logicalType": "uuid"}
        return AVRO_TYPES[type_]
    match type_["type"]:
        case "struct":
            return avro_record(type_["fields"], f"r{name}")
        case "list":
            return {
                "type": "array",
                "element-id": type_["element-id"],
                "items": ["null", avro_type(type_["element"], type_["element-id"])],
            }
        case "map":
            if type_["key"] == "string":
                return {
                    "type": "map",
                    "key-id": type_["key-id"],
                    "value-id": type_["value-id"],
                    "values": ["null", avro_type(type_["value"], type_["value-id"])],
                }
            fields = [
                {
                    "name": "key",
                    "type": avro_type(type_["key"], type_["key-id"]),
                    "field-id": type_["key-id"],
                },
                {
                    "name": "value",
                    "type": ["null", avro_type(type_["value"], type_["value-id"])],
                    "field-id": type_["value-id"],
                },
            ]
            record = {"type": "record", "name": f"k{name}_v{name}", "fields": fields}
            return {"type": "array", "logicalType": "map", "items": record}
    raise AssertionError(type_)


def avro_record(fields, name):
    """A record of optional fields."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {
                "name": field["name"],
                "type": ["null", avro_type(field["type"], field["id"])],
                "default": None,
                "field-id": field["id"],
            }
            for field in fields
            if field["type"] != "unknown"
        ],
    }
