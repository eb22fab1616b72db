"""JSON single values, read and written: column defaults and partition values of REST catalogs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from icesql.errors import DataError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import NANOS_PER_DAY
from icesql.iceberg.calendar import NANO_TIMESTAMPS, ZONED, date_text, time_text, timestamp_text
from icesql.iceberg.metadata.json_fields import Malformed, as_int, as_list, as_object, as_text
from icesql.iceberg.transforms import uuid_text

_EPOCH: Final = date(1970, 1, 1).toordinal()
_TIME: Final = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_TIMESTAMP: Final = (
    r"([+-]?\d{4,6}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?"
)
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def parse_single_value(type: t.IcebergType, json: Any) -> Any:
    """The internal value of a JSON value of this type; null is None.

    Structs become dicts by field id, lists lists, maps lists of pairs. Raises Malformed.
    """
    if json is None:
        return None
    match type:
        case t.BooleanType():
            if not isinstance(json, bool):
                raise _wrong(type, json)
            return json
        case t.IntegerType():
            return as_int(json, "default of int", 32)
        case t.LongType():
            return as_int(json, "default of long", 64)
        case t.FloatType() | t.DoubleType():
            return _floating(type, json)
        case t.DecimalType():
            return _decimal(type, json)
        case t.DateType():
            return _days(type, as_text(json, "default of date"))
        case t.TimeType():
            return _time_nanos(type, as_text(json, "default of time")) // 1000
        case t.AnyTimestamp():
            nanos = _timestamp_nanos(type, json)
            return nanos if isinstance(type, NANO_TIMESTAMPS) else nanos // 1000
        case t.StringType():
            return as_text(json, "default of string")
        case t.UUIDType():
            text = as_text(json, "default of uuid")
            if not re.fullmatch(_UUID, text):
                raise _wrong(type, json)
            return bytes.fromhex(text.replace("-", ""))
        case t.FixedType() | t.BinaryType():
            return _bytes(type, as_text(json, f"default of {type}"))
        case t.StructType() | t.ListType() | t.MapType():
            return _nested(type, json)
        case t.UnknownType():
            raise Malformed("a column of type unknown has a default other than null")
        case _:
            raise Malformed(f"defaults of type {type} are not defined")


def _nested(type: t.StructType | t.ListType | t.MapType, json: Any) -> Any:
    match type:
        case t.StructType(fields):
            return _struct(fields, as_object(json, "default of struct"))
        case t.ListType():
            values = as_list(json, "default of list")
            return [parse_single_value(type.element, each) for each in values]
        case t.MapType():
            pairs = as_object(json, "default of map")
            keys = as_list(pairs.get("keys"), "default of map keys")
            values = as_list(pairs.get("values"), "default of map values")
            if len(keys) != len(values):
                raise Malformed("default of map has another number of keys than of values")
            return [
                (parse_single_value(type.key, key), parse_single_value(type.value, value))
                for key, value in zip(keys, values, strict=True)
            ]


def _struct(fields: tuple[Any, ...], json: Mapping[str, Any]) -> dict[int, Any]:
    types = {str(child.field_id): child for child in fields}
    unknown = [key for key in json if key not in types]
    if unknown:
        raise Malformed(f"default of struct names field {unknown[0]!r}, which it does not have")
    return {
        types[key].field_id: parse_single_value(types[key].type, value)
        for key, value in json.items()
    }


def _floating(type: t.IcebergType, json: Any) -> float:
    if isinstance(json, bool) or not isinstance(json, int | float):
        raise _wrong(type, json)
    try:
        return float(json)
    except OverflowError as error:
        raise _wrong(type, json) from error


def _decimal(type: t.DecimalType, json: Any) -> Decimal:
    try:
        value = Decimal(as_text(json, "default of decimal"))
    except InvalidOperation as error:
        raise _wrong(type, json) from error
    if not value.is_finite() or value.as_tuple().exponent != -type.scale:
        raise _wrong(type, json)
    if len(value.as_tuple().digits) > type.precision:
        raise _wrong(type, json)
    return value


def _days(type: t.IcebergType, text: str) -> int:
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError as error:
        raise _wrong(type, text) from error


def _time_nanos(type: t.IcebergType, text: str) -> int:
    found = re.fullmatch(_TIME, text)
    if not found:
        raise _wrong(type, text)
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise _wrong(type, text)
    nanos = int((found[4] or "").ljust(9, "0"))
    return ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos


def _timestamp_nanos(type: t.AnyTimestamp, json: Any) -> int:
    text = as_text(json, f"default of {type}")
    found, zoned = re.fullmatch(_TIMESTAMP, text), isinstance(type, ZONED)
    if not found or (found[3] is not None) != zoned:
        raise _wrong(type, text)
    nanos = _days(type, found[1]) * NANOS_PER_DAY + _time_nanos(type, found[2])
    if zoned and found[3] != "Z":
        ahead = _time_nanos(type, found[3][1:])
        nanos += ahead if found[3][0] == "-" else -ahead
    if not -(1 << 63) <= nanos < 1 << 63 and isinstance(type, NANO_TIMESTAMPS):
        raise _wrong(type, text)
    return nanos


def _bytes(type: t.IcebergType, text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError as error:
        raise _wrong(type, text) from error
    if isinstance(type, t.FixedType) and len(value) != type.length:
        raise _wrong(type, text)
    return value


def _wrong(type: t.IcebergType, json: Any) -> Malformed:
    return Malformed(f"{str(json)[:100]!r} is not a value of type {type}")


# ------------------------------------------------------------------ values as JSON
# Source: Iceberg spec, "JSON single-value serialization".


def single_value_json(type: t.IcebergType, value: Any) -> Any:
    """The JSON form of a value in the internal form of ``iceberg.types``; None is null.

    ``parse_single_value`` turns it back into the value. Raises DataError for NaN and infinities,
    which JSON cannot express, and for types that have no defaults.

    >>> single_value_json(t.DecimalType(9, 2), __import__("decimal").Decimal("1E+1"))
    '10.00'
    """
    if value is None:
        return None
    match type:
        case t.BooleanType() | t.IntegerType() | t.LongType() | t.StringType():
            return value
        case t.FloatType() | t.DoubleType():
            if not math.isfinite(value):
                raise DataError(
                    f"{value} cannot be the default of a column: JSON has no such number"
                )
            return value
        case t.DecimalType(scale=scale):
            return f"{value:.{scale}f}"
        case t.DateType():
            return date_text(value)
        case t.TimeType():
            return time_text(value, 6)
        case t.AnyTimestamp():
            return timestamp_text(value, type, separator="T")
        case t.UUIDType():
            return uuid_text(value)
        case t.FixedType() | t.BinaryType():
            return value.hex().upper()
        case t.StructType(fields):
            types = {child.field_id: child.type for child in fields}
            return {str(key): single_value_json(types[key], each) for key, each in value.items()}
        case t.ListType():
            return [single_value_json(type.element, each) for each in value]
        case t.MapType():
            return {
                "keys": [single_value_json(type.key, key) for key, _ in value],
                "values": [single_value_json(type.value, each) for _, each in value],
            }
        case _:
            raise DataError(f"a column of type {type} cannot have a default")
