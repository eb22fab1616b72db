"""One value as text for people. Imports nothing slow."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from icesql.interval import Interval


def text_of(value: Any) -> str:
    """One value as people read it; NULL is ``NULL``, nested values are JSON."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return "0x" + bytes(value).hex()
        case datetime():
            return value.isoformat(" ")
        case timedelta():
            return str(Interval.of(value))
        case list() | tuple() | dict():
            return json_of(value)
        case _:
            return str(value)


def json_of(value: Any) -> str:
    """One value as JSON text: exact decimals as numbers, NaN and infinities as strings.

    Times are ISO 8601 strings, bytes lower-case hex, a struct is an object, a map a list of
    [key, value] pairs.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if value != value:
                return '"NaN"'
            if value in (float("inf"), float("-inf")):
                return '"Infinity"' if value > 0 else '"-Infinity"'
            return repr(value)
        case Decimal():
            return format(value, "f") if value.is_finite() else f'"{value}"'
        case bytes() | bytearray() | memoryview():
            return f'"{bytes(value).hex()}"'
        case date() | time():
            return f'"{value.isoformat()}"'
        case timedelta():
            return json.dumps(str(Interval.of(value)))
        case dict():
            pairs = (
                f"{json.dumps(str(key), ensure_ascii=False)}: {json_of(item)}"
                for key, item in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(json_of, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False)
