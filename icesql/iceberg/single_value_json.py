"""Values as JSON single values, the form in which metadata keeps column defaults.

Source: Iceberg spec, "JSON single-value serialization".
"""

from __future__ import annotations

import math
from typing import Any

from icesql.errors import DataError
from icesql.iceberg import types as t
from icesql.iceberg.calendar import date_text, time_text, timestamp_text
from icesql.iceberg.transforms import uuid_text


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
