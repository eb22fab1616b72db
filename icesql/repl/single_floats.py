"""FLOAT values as people write them: 0.1, where the double of that value is 0.10000000149011612.

A row has Python's floats, which are doubles. Here each value of a FLOAT column becomes the double
whose shortest text is the shortest text of the float.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from icesql.iceberg.decimals import shortest_single

if TYPE_CHECKING:
    from icesql.engine.result_schema import ResultType


def as_written(
    rows: Iterable[Sequence[Any]], types: Sequence[ResultType]
) -> Iterable[Sequence[Any]]:
    """``rows`` of columns of these types, FLOAT values inside of others included."""
    change = [(at, convert) for at, each in enumerate(types) if (convert := _converter(each))]
    return _changed(rows, change) if change else rows


def _changed(
    rows: Iterable[Sequence[Any]], change: Sequence[tuple[int, Callable[[Any], Any]]]
) -> Iterable[Sequence[Any]]:
    for row in rows:
        cells = list(row)
        for at, convert in change:
            cells[at] = convert(cells[at])
        yield cells


def _converter(declared: ResultType) -> Callable[[Any], Any] | None:
    """A converter of the FLOAT values in a value of a type, None if there can be none."""
    if declared.kind == "float":
        return _or_null(shortest_single)
    inner = [_converter(child) for _, child in declared.children]
    if not any(inner):
        return None
    each = [convert or _unchanged for convert in inner]
    match declared.kind:
        case "list":
            return _or_null(lambda value: list(map(each[0], value)))
        case "map":
            return _or_null(lambda value: [(each[0](key), each[1](item)) for key, item in value])
        case "tuple":
            return _or_null(
                lambda value: tuple(f(item) for f, item in zip(each, value, strict=True))
            )
        case "struct":
            return _or_null(
                lambda value: {
                    name: f(item) for f, (name, item) in zip(each, value.items(), strict=True)
                }
            )
        case _:
            # The member of the union that a value came from is no longer known.
            if any(child.kind == "double" or child.is_nested for _, child in declared.children):
                return None
            return lambda value: shortest_single(value) if isinstance(value, float) else value


def _or_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _unchanged(value: Any) -> Any:
    return value
