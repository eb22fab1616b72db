"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime
import time
from typing import Final

from icesql.engine.values import Timestamp as Timestamp

Date = datetime.date
Time = datetime.time
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a number of seconds since 1970."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a number of seconds since 1970."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> Timestamp:
    """The local time of a number of seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """Equal to every type code (the SQL name of a column's type) of its group."""

    def __init__(self, name: str, *prefixes: str) -> None:
        self._name, self._prefixes = name, prefixes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._name == other._name
        if not isinstance(other, str):
            return NotImplemented
        base = other.lower().partition("(")[0]
        return base in self._prefixes and not other.endswith("[]")

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING: Final = TypeObject("STRING", "varchar", "uuid", "json", "html", "variant")
BINARY: Final = TypeObject("BINARY", "blob")
NUMBER: Final = TypeObject(
    "NUMBER", "tinyint", "smallint", "integer", "bigint", "ubigint", "hugeint", "float", "double",
    "decimal", "boolean",
)  # fmt: skip
DATETIME: Final = TypeObject(
    "DATETIME", "date", "time", "time_ns", "timetz", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns",
)  # fmt: skip
ROWID: Final = TypeObject("ROWID")
