"""An answer as values that can be compared, and what two answers have in common."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_TO_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DIGITS = 10


@dataclass(frozen=True)
class Answer:
    """Column names and rows; a value has a tag of its type where Python's equality is too wide."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def answer_of(table: pa.Table) -> Answer:
    """The answer in an Arrow table."""
    columns = [
        [value for chunk in column.chunks for value in values(chunk)] for column in table.columns
    ]
    rows = tuple(zip(*columns, strict=True)) if columns else ((),) * table.num_rows
    return Answer(tuple(table.column_names), rows)


def differ(expected: Answer, found: Answer) -> str | None:
    """None where both are the same; else "order", "names", "columns" or "rows"."""
    if len(expected.names) != len(found.names):
        return "columns"
    if len(expected.rows) != len(found.rows):
        return "rows"
    if not all(map(_same, expected.rows, found.rows)):
        left, right = ([_key(row) for row in each.rows] for each in (expected, found))
        if Counter(left) != Counter(right):
            left, right = sorted(left, key=repr), sorted(right, key=repr)
            ordered = [sorted(each.rows, key=lambda r: repr(_key(r))) for each in (expected, found)]
            if not all(map(_same, *ordered)):
                return "rows"
        return "order"
    return None if expected.names == found.names else "names"


def first_difference(expected: Answer, found: Answer, most: int = 3) -> str:
    """The first rows that only one side has, and what they are called."""
    said = ""
    if expected.names != found.names:
        pairs = [
            pair for pair in itertools.zip_longest(expected.names, found.names) if len({*pair}) > 1
        ]
        said = f"names {pairs[:most]!r:.300} "
    left, right = ([_key(row) for row in each.rows] for each in (expected, found))
    missing = list((Counter(left) - Counter(right)).elements())[:most]
    surplus = list((Counter(right) - Counter(left)).elements())[:most]
    if not missing and not surplus:
        return said
    return f"{said}expected {missing!r:.400} found {surplus!r:.400} of {len(left)} and {len(right)} rows"


def values(array: pa.Array) -> list[Any]:
    """Hashable values of an Arrow array: tagged tuples, bare integers, decimals and texts."""
    kind = array.type
    if isinstance(kind, pa.UuidType):
        return [None if value is None else str(value) for value in array.to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return values(array.storage)
    if pa.types.is_dictionary(kind):
        return values(array.dictionary_decode())
    if pa.types.is_timestamp(kind):
        tag = "timestamptz" if kind.tz else "timestamp"
        return _tagged(tag, array.cast(pa.int64()), _TO_NANOS[kind.unit])
    if pa.types.is_time(kind):
        return _tagged("time", array.cast(pa.int64() if kind.bit_width == 64 else pa.int32()),
                       _TO_NANOS[kind.unit])  # fmt: skip
    if pa.types.is_date(kind):
        return _tagged("date", array.cast(pa.date32()).cast(pa.int32()), 1)
    if pa.types.is_floating(kind):
        return [None if v is None else ("float", _float(v)) for v in array.to_pylist()]
    if pa.types.is_boolean(kind):
        return [None if v is None else ("boolean", v) for v in array.to_pylist()]
    if pa.types.is_interval(kind):
        return [
            None if v is None else ("interval", v.months, v.days, v.nanoseconds)
            for v in array.to_pylist()
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = values(array.values)
        offsets = array.offsets.to_pylist()
        return [
            ("list", tuple(inner[offsets[i] : offsets[i + 1]])) if valid else None
            for i, valid in enumerate(array.is_valid().to_pylist())
        ]
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner = values(array.values)
        start = array.offset if len(array.values) == (array.offset + len(array)) * size else 0
        return [
            ("list", tuple(inner[(start + i) * size : (start + i + 1) * size])) if valid else None
            for i, valid in enumerate(array.is_valid().to_pylist())
        ]
    if pa.types.is_map(kind):
        keys, items = values(array.keys), values(array.items)
        offsets = array.offsets.to_pylist()
        return [
            ("map", tuple(zip(keys[a:b], items[a:b], strict=True))) if valid else None
            for a, b, valid in zip(
                offsets[:-1], offsets[1:], array.is_valid().to_pylist(), strict=True
            )
        ]
    if pa.types.is_struct(kind):
        columns = [values(child) for child in array.flatten()]
        names = [field.name for field in kind]
        return [
            ("struct", tuple(zip(names, (column[i] for column in columns), strict=True)))
            if valid
            else None
            for i, valid in enumerate(array.is_valid().to_pylist())
        ]
    return array.to_pylist()


def _tagged(tag: str, numbers: pa.Array, factor: int) -> list[Any]:
    # The greatest numbers are infinities, in whatever unit.
    ends = {2**63 - 1: "infinity", -(2**63) + 1: "-infinity", 2**31 - 1: "infinity",
            -(2**31) + 1: "-infinity"}  # fmt: skip
    wide = {v: end for v, end in ends.items() if abs(v) > 2**62 or tag == "date"}
    return [None if v is None else (tag, wide.get(v, v * factor)) for v in numbers.to_pylist()]


def _float(value: float) -> Any:
    return "nan" if math.isnan(value) else value


def _same(left: Any, right: Any) -> bool:
    """Equal, floating-point numbers to nine digits: sums depend on the order of their terms."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return (type(left) is type(right) and left == right) or _is_number(left, right)


def _is_number(left: Any, right: Any) -> bool:
    from decimal import Decimal

    kinds = (int, Decimal)
    return isinstance(left, kinds) and isinstance(right, kinds) and left == right


def _key(row: Sequence[Any]) -> Any:
    if isinstance(row, tuple):
        return tuple(map(_key, row))
    if isinstance(row, float):
        return float(f"{row:.{_DIGITS - 1}g}") if math.isfinite(row) else row
    return row
