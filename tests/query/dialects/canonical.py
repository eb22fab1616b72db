"""Values of two engines as texts that are equal if the values are."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import icesql


def canonical(value: Any) -> str:
    """The text of a value: its kind counts (1, 1.0 and Decimal 1 differ), its class does not."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double(value)
        case Decimal():
            return f"{value:f}m"
        case str():
            return repr(value)
        case bytes() | bytearray():
            return f"x{bytes(value).hex()}"
        case dt.datetime():
            if value.tzinfo is not None:
                value = value.astimezone(dt.UTC).replace(tzinfo=None)
            return value.isoformat(" ")
        case dt.timedelta():
            return f"{value // dt.timedelta(microseconds=1)}us"
        case dt.date():
            return value.isoformat()
        case _ if hasattr(value, "asDict"):
            return canonical(value.asDict())
        case dict() if not value:
            return "[]"  # an empty map and an empty list are not distinguished
        case dict():
            pairs = sorted(value.items(), key=str)
            return "{" + ", ".join(f"{canonical(k)}: {canonical(v)}" for k, v in pairs) + "}"
        case list() if value and all(_is_pair(each) for each in value):
            return canonical(dict(value))
        case list() | tuple():
            return "[" + ", ".join(map(canonical, value)) + "]"
        case _ if hasattr(value, "months"):
            return f"{value.months} months"
        case _:
            return f"{type(value).__name__} {value}"


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and not hasattr(value, "asDict")


def _double(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if value == 0:
        return "0.0"
    # Mathematical libraries may differ in the last bit.
    return f"{value:.13g}" + ("" if "." in f"{value:.13g}" or "e" in f"{value:.13g}" else ".0")


def lines(rows: list[Any], sql: str) -> list[str]:
    """The rows of a result, sorted unless the statement orders them."""
    made = ["(" + ", ".join(canonical(each) for each in row) + ")" for row in rows]
    return made if "ORDER BY" in sql.rpartition(")")[2] else sorted(made)


def answer(connection: icesql.Connection, sql: str, expected: list[str] | None) -> tuple[str, Any]:
    """Compare the rows of a statement, or its error if ``expected`` is None: verdict and result."""
    try:
        got = lines(connection.execute(sql).fetchall(), sql)
    except icesql.Error as error:
        return ("refused" if expected is not None else "both refuse"), str(error)
    return ("lax" if expected is None else "same" if got == expected else "wrong"), got
