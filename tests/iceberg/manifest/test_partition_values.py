"""Partition values of every Avro spelling, in the internal form of their type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from icesql.iceberg.avro.schema import AvroNode
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest.partition_values import partition_converter
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)

HEX = "f79c3e09677c4bbda4793f349cb785e7"


def convert(node: AvroNode, type_: IcebergType, value: Any) -> Any:
    found = partition_converter(node, type_)
    return value if found is None else found(value)


@pytest.mark.parametrize(
    ("kind", "logical", "type_", "stored", "value"),
    [
        ("boolean", None, BOOLEAN, True, True),
        ("int", None, INTEGER, 5, 5),
        ("int", None, LONG, 5, 5),
        ("int", None, DATE, 5, 5),
        ("int", "date", DATE, 5, 5),
        ("int", "date", INTEGER, 5, 5),
        ("float", None, DOUBLE, 1.5, 1.5),
        ("string", None, STRING, "x", "x"),
        ("bytes", None, BINARY, b"x", b"x"),
        ("fixed", None, FixedType(1), b"x", b"x"),
        ("long", "time-micros", TIME, 5, 5),
        ("int", "time-millis", TIME, 5, 5000),
        ("long", "timestamp-micros", TIMESTAMP, 5, 5),
        ("long", "timestamp-millis", TIMESTAMPTZ, 5, 5000),
        ("long", "timestamp-nanos", TIMESTAMP, -1, -1),
        ("int", "date", TIMESTAMP, -1, -86_400_000_000),
        ("int", "date", TIMESTAMP_NS, 1, 86_400_000_000_000),
        ("long", "timestamp-nanos", TIMESTAMPTZ_NS, 5, 5),
        ("long", "timestamp-micros", TIMESTAMP_NS, 5, 5000),
        ("long", "timestamp-millis", TIMESTAMP_NS, 5, 5_000_000),
        ("fixed", "uuid", UUID, bytes.fromhex(HEX), bytes.fromhex(HEX)),
        ("string", "uuid", UUID, HEX, bytes.fromhex(HEX)),
        ("string", "uuid", UNKNOWN, HEX, bytes.fromhex(HEX)),
        ("bytes", "decimal", DecimalType(9, 2), b"\x01\x59", Decimal("3.45")),
        ("long", None, DecimalType(9, 2), 345, Decimal("3.45")),
        ("int", "date", UNKNOWN, 5, 5),
        ("int", "time-millis", UNKNOWN, 5, 5000),
        ("string", None, UNKNOWN, "x", "x"),
    ],
)
def test_values_take_the_form_of_their_type(
    kind: str, logical: str | None, type_: IcebergType, stored: Any, value: Any
) -> None:
    assert convert(AvroNode(kind, logical=logical, size=16), type_, stored) == value


def test_a_decimal_of_a_dropped_column_keeps_the_scale_of_the_file() -> None:
    node = AvroNode("bytes", logical="decimal", scale=3)
    assert str(convert(node, UNKNOWN, b"\x0b")) == "0.011"


@pytest.mark.parametrize(
    ("kind", "type_", "stored"),
    [
        ("string", LONG, "5"),
        ("long", STRING, 5),
        ("double", INTEGER, 5.0),
        ("string", DecimalType(9, 2), "3.45"),
        ("bytes", DecimalType(9, 2), b""),
        ("string", UUID, "no uuid"),
        ("string", UUID, "00"),
        ("boolean", DATE, True),
    ],
)
def test_values_of_another_kind_are_refused_when_they_are_met(
    kind: str, type_: IcebergType, stored: Any
) -> None:
    found = partition_converter(AvroNode(kind), type_)
    assert found is not None
    with pytest.raises(BadAvro):
        found(stored)
