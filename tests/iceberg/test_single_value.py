"""JSON single values: the examples of the spec's table and what must be refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.single_value import parse_single_value
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
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
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

MICROS = 1_510_871_468_123_456  # 2017-11-16T22:31:08.123456


@pytest.mark.parametrize(
    ("type_", "json", "value"),
    [
        (BOOLEAN, True, True),
        (INTEGER, 34, 34),
        (LONG, 34, 34),
        (FLOAT, 1, 1.0),
        (DOUBLE, 1.5, 1.5),
        (DecimalType(9, 2), "14.20", Decimal("14.20")),
        (DecimalType(9, 2), "-0.05", Decimal("-0.05")),
        (DATE, "2017-11-16", 17486),
        (DATE, "1969-12-31", -1),
        (TIME, "22:31:08.123456", 81_068_123_456),
        (TIME, "22:31:08", 81_068_000_000),
        (TIMESTAMP, "2017-11-16T22:31:08.123456", MICROS),
        (TIMESTAMP, "1969-12-31T23:59:59.999999", -1),
        (TIMESTAMPTZ, "2017-11-16T22:31:08.123456+00:00", MICROS),
        (TIMESTAMPTZ, "2017-11-16T22:31:08.123456Z", MICROS),
        (TIMESTAMPTZ, "2017-11-16T14:31:08.123456-08:00", MICROS),
        (TIMESTAMP_NS, "2017-11-16T22:31:08.123456789", MICROS * 1000 + 789),
        (TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456789+00:00", MICROS * 1000 + 789),
        (STRING, "iceberg", "iceberg"),
        (
            UUID,
            "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"),
        ),
        (FixedType(4), "000102FF", b"\x00\x01\x02\xff"),
        (BINARY, "000102ff", b"\x00\x01\x02\xff"),
        (INTEGER, None, None),
        (UNKNOWN, None, None),
    ],
    ids=str,
)
def test_values_become_their_internal_form(type_: IcebergType, json: object, value: object) -> None:
    parsed = parse_single_value(type_, json)
    assert parsed == value
    assert type(parsed) is type(value)


def test_nested_values_follow_ids_elements_and_pairs() -> None:
    struct = StructType((NestedField(1, "a", INTEGER), NestedField(2, "b", DATE)))
    assert parse_single_value(struct, {"1": 1, "2": "1970-01-02"}) == {1: 1, 2: 1}
    assert parse_single_value(ListType(3, DATE), ["1970-01-02", None]) == [1, None]
    mapping = MapType(4, STRING, 5, INTEGER)
    assert parse_single_value(mapping, {"keys": ["a", "b"], "values": [1, 2]}) == [
        ("a", 1),
        ("b", 2),
    ]


@pytest.mark.parametrize(
    ("type_", "json"),
    [
        (BOOLEAN, 1),
        (INTEGER, "thirty-four"),
        (INTEGER, True),
        (INTEGER, 1 << 31),
        (LONG, 1.5),
        (FLOAT, "1"),
        (DOUBLE, 10**400),
        (DecimalType(9, 2), "14.2"),
        (DecimalType(3, 2), "14.20"),
        (DecimalType(9, 2), 14.2),
        (DecimalType(9, 2), "NaN"),
        (DecimalType(9, 2), "x"),
        (DATE, "2017-13-01"),
        (DATE, 17486),
        (TIME, "25:00:00"),
        (TIME, "noon"),
        (TIMESTAMP, "2017-11-16T22:31:08+00:00"),
        (TIMESTAMPTZ, "2017-11-16T22:31:08"),
        (TIMESTAMPTZ, "2017-11-16T22:31:08+99:00"),
        (UUID, "f79c3e09677c4bbda4793f349cb785e7"),
        (FixedType(4), "00"),
        (BINARY, "0"),
        (BINARY, "zz"),
        (UNKNOWN, 1),
        (VARIANT, {}),
        (StructType((NestedField(1, "a", INTEGER),)), {"2": 1}),
        (MapType(4, STRING, 5, INTEGER), {"keys": ["a"], "values": []}),
        (ListType(3, DATE), {}),
    ],
    ids=str,
)
def test_values_of_another_type_are_refused(type_: IcebergType, json: object) -> None:
    with pytest.raises(Malformed):
        parse_single_value(type_, json)
