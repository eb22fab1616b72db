"""FLOAT values as people write them: 0.1, where the double of that value is 0.10000000149011612.

A row has Python's floats, which are doubles. Here each value of a FLOAT column becomes the double
whose shortest text is the shortest text of the float.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from icesql.iceberg.decimals import shortest_single

if TYPE_CHECKING:
    from icesql.engine.result_schema import ResultType


def as_written(
    rows: Iterable[Sequence[Any]], types: Sequence[ResultType]
) -> Iterable[Sequence[Any]]:
    """``rows`` of columns of these types, FLOAT values inside of others included."""
    change = [(at, each) for at, each in enumerate(types) if _has_float(each)]
    return _changed(rows, change) if change else rows


def _changed(
    rows: Iterable[Sequence[Any]], change: Sequence[tuple[int, ResultType]]
) -> Iterable[Sequence[Any]]:
    for row in rows:
        cells = list(row)
        for at, declared in change:
            cells[at] = _written(cells[at], declared)
        yield cells


def _has_float(declared: ResultType) -> bool:
    return declared.kind == "float" or any(_has_float(child) for _, child in declared.children)


def _written(value: Any, declared: ResultType) -> Any:
    if value is None:
        return None
    if declared.kind == "float":
        return shortest_single(value)
    inner = [child for _, child in declared.children]
    match declared.kind:
        case "list":
            return [_written(each, inner[0]) for each in value]
        case "map":
            return [tuple(map(_written, pair, inner)) for pair in value]
        case "tuple":
            return tuple(map(_written, value, inner))
        case "struct":
            return dict(zip(value, map(_written, value.values(), inner), strict=True))
        case "union" if isinstance(value, float):
            # The member of the union that a value came from is no longer known.
            if _has_float(declared) and not any(
                child.kind == "double" or child.is_nested for child in inner
            ):
                return shortest_single(value)
    return value
