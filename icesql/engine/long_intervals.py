"""Reject intervals that Arrow cannot represent: it has nanoseconds in 64 bits for the time part.

DuckDB's export to Arrow overflows for longer intervals without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icesql.quoting import literal

if TYPE_CHECKING:
    from icesql.engine.result_schema import ResultType

_MOST_HOURS: Final = (1 << 63) // 3_600_000_000_000
_PROBLEM: Final = (
    "'an interval with more than 292 years in hours, minutes or seconds has no value in a result; "
    "CAST it to VARCHAR'"
)


def without_long_intervals(column: str, declared: ResultType) -> str:
    """SQL for ``column`` that raises an error if a value, at any depth, is too long."""
    too_long = _too_long(column, declared, 0)
    return (
        column
        if too_long is None
        else f"CASE WHEN {too_long} THEN error({_PROBLEM}) ELSE {column} END"
    )


def _too_long(value: str, declared: ResultType, depth: int) -> str | None:
    """SQL that is true if ``value`` contains too long an interval; None for other types."""
    match declared.kind:
        case "interval":
            return f"abs(date_part('hour', {value})) >= {_MOST_HOURS}"
        case "list":
            return _any_too_long(value, declared.children[0][1], depth)
        case "map":
            (_, key), (_, item) = declared.children
            parts = [
                _any_too_long(f"map_keys({value})", key, depth),
                _any_too_long(f"map_values({value})", item, depth),
            ]
        case "struct" | "tuple":
            parts = [
                _too_long(f"struct_extract_at({value}, {place})", child, depth)
                for place, (_, child) in enumerate(declared.children, start=1)
            ]
        case "union":
            parts = [
                _too_long(f"union_extract({value}, {literal(name)})", child, depth)
                for name, child in declared.children
            ]
        case _:
            return None
    found = [f"coalesce({part}, false)" for part in parts if part is not None]
    return f"({' OR '.join(found)})" if found else None


def _any_too_long(values: str, element: ResultType, depth: int) -> str | None:
    inner = _too_long(f"e{depth}", element, depth + 1)
    return inner and f"len(list_filter({values}, lambda e{depth}: {inner})) > 0"
