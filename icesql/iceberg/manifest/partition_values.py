"""Partition values of manifests: from the stored Avro value to the internal form of their type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import AvroNode
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.bounds import NANOS_PER_DAY, decode_decimal, scaled
from icesql.iceberg.partitioning import PartitionSpec

Convert = Callable[[Any], Any]


class PartitionForm(Frozen):
    """The types of the partition values of a spec, and the id and the name of each of its fields.

    ``types`` are ``partition_types`` of ``iceberg.partitioning``. With ``fields`` the values in a
    manifest are found by these, and UNSTORED marks one that is missing; with None by position.
    """

    types: tuple[t.IcebergType, ...] = ()
    fields: tuple[tuple[int, str], ...] | None = None

    @classmethod
    def of(cls, spec: PartitionSpec, types: Sequence[t.IcebergType]) -> PartitionForm:
        """The form of a spec with partition values of these types."""
        return cls(tuple(types), tuple((each.field_id, each.name) for each in spec.fields))


class Unstored(Enum):
    """Placeholder in a partition tuple for a value that the manifest does not have.

    Unlike NULL it implies nothing about the rows of the file, so no file is pruned by it.
    """

    UNSTORED = "not stored"


UNSTORED: Final = Unstored.UNSTORED

_INTEGERS: Final = ("int", "long")
_BYTES: Final = ("bytes", "fixed")


def partition_converter(node: AvroNode, type: t.IcebergType) -> Convert | None:
    """A converter of stored values that are not null to ``type``; None if there is none.

    The column may have been promoted since (int to long, float to double, date to timestamp), and
    ``type`` may be UNKNOWN, where the Avro type alone decides. An impossible pair gives a converter
    that raises BadAvro, since the values may all be null.
    """
    match type:
        case t.UnknownType():
            return _by_avro_type(node)
        case t.IntegerType() | t.LongType() | t.DateType() if node.kind in _INTEGERS:
            return None
        case t.FloatType() | t.DoubleType() if node.kind in ("float", "double"):
            return None
        case t.FloatType() | t.DoubleType() if node.kind in _INTEGERS:
            return float
        case t.BooleanType() if node.kind == "boolean":
            return None
        case t.StringType() if node.kind in ("string", "enum"):
            return None
        case t.StringType() if node.kind == "bytes":
            return text_of
        case t.TimeType() if node.kind in _INTEGERS:
            return _times(1000) if node.logical == "time-millis" else None
        case t.TimestampType() | t.TimestamptzType() if node.kind in _INTEGERS:
            return _instants(node, 1000)
        case t.TimestampNanoType() | t.TimestamptzNanoType() if node.kind in _INTEGERS:
            return _instants(node, 1)
        case t.DecimalType(scale=scale):
            return _decimal(node, scale)
        case t.UUIDType():
            return _uuid(node)
        case t.FixedType() | t.BinaryType() if node.kind in _BYTES:
            return None
        case t.BinaryType() if node.kind == "string":
            return str.encode
        case _:
            return _impossible(node, type)


def text_of(value: bytes) -> str:
    """Bytes that Avro lets a reader take for a string. Raises BadAvro."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadAvro(f"{value[:50]!r} is not UTF-8") from error


def _by_avro_type(node: AvroNode) -> Convert | None:
    if node.kind in ("array", "map", "record", "union"):
        return _impossible(node, t.UNKNOWN)
    match node.logical:
        case "decimal":
            return _decimal(node, node.scale)
        case "uuid":
            return _uuid(node)
        case "timestamp-millis" | "local-timestamp-millis" | "time-millis":
            return _times(1000)
        case _:
            return None


def _times(factor: int) -> Convert:
    return lambda value: value * factor


# Nanoseconds in a unit of Avro's logical types.
_UNITS: Final = {
    "date": NANOS_PER_DAY,
    "timestamp-millis": 1_000_000,
    "timestamp-micros": 1000,
    "timestamp-nanos": 1,
}


def _instants(node: AvroNode, wanted: int) -> Convert | None:
    """A converter to units of ``wanted`` ns, which are those of a type without logical type."""
    stored = _UNITS.get((node.logical or "").removeprefix("local-"), wanted)
    if node.kind == "int":
        stored = NANOS_PER_DAY
    if stored < wanted:
        return lambda value: value * stored // wanted
    return _times(stored // wanted) if stored > wanted else None


def _decimal(node: AvroNode, scale: int) -> Convert:
    if node.kind in _INTEGERS:
        return lambda value: scaled(value, scale)
    if node.kind not in _BYTES:
        return _impossible(node, t.DecimalType(38, scale))

    def convert(value: bytes) -> Decimal:
        found = decode_decimal(value, scale)
        if found is None:
            raise BadAvro(f"a decimal of {len(value)} bytes in a partition")
        return found

    return convert


def _uuid(node: AvroNode) -> Convert | None:
    if node.kind in _BYTES:
        return None

    def convert(value: Any) -> bytes:
        try:
            packed = bytes.fromhex(value.replace("-", ""))
        except (ValueError, AttributeError) as error:
            raise BadAvro(f"{str(value)[:50]!r} is not a uuid") from error
        if len(packed) != 16:
            raise BadAvro(f"{value[:50]!r} is not a uuid")
        return packed

    return convert


def _impossible(node: AvroNode, type: t.IcebergType) -> Convert:
    def convert(value: Any) -> Any:
        raise BadAvro(f"a partition value of type {type} is stored as Avro {node.kind}")

    return convert
