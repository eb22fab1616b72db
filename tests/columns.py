"""Columns as a line of text: ``1 id long!, 2 s struct<3 x int>, 4 l list<5 string>``.

Each is its id, its name and its type, ``!`` where it is required, and ``= "x"`` with its initial
default as JSON. Types are spelled as metadata spells them; of a list the element has an id alone,
of a map ``map<6 string, 7 long!>`` the key and the value have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.single_value import parse_single_value
from icesql.write.parquet_schema import written_type


def columns(text: str) -> tuple[t.NestedField, ...]:
    """The columns of a line."""
    return tuple(map(_column, _parts(text)))


def json_columns(text: str) -> list[dict[str, Any]]:
    """The columns of a line as metadata has them."""
    found: Any = t.type_to_json(t.StructType(columns(text)))
    return list(found["fields"])


def _column(text: str) -> t.NestedField:
    number, name, rest = text.split(maxsplit=2)
    # What ends with a bracket has defaults of its fields alone.
    rest, _, default = (rest, "", "") if rest.endswith(">") else rest.partition(" = ")
    type, required = _type(rest)
    value = parse_single_value(type, json.loads(default)) if default else t.MISSING
    return t.NestedField(int(number), name, type, required, initial_default=value)


def array(kind: str, values: list[Any]) -> pa.Array:
    """Values as an array of a type by Arrow's name or by Iceberg's; texts may stand for others."""
    try:
        type = pa.type_for_alias(kind)
    except ValueError:
        type = written_type(type_of(kind))
    if not pa.types.is_nested(type) and {each.__class__ for each in values} & {str}:
        return pa.array(values).cast(type)
    return pa.array(values, type)


def type_of(text: str) -> t.IcebergType:
    """The type of a text, which may be nested."""
    kind, _, inner = text.removesuffix(">").partition("<")
    if kind == "struct":
        return t.StructType(columns(inner))
    inner_types = [
        (int(number), *_type(rest))
        for number, rest in (each.split(maxsplit=1) for each in _parts(inner))
    ]
    match kind, inner_types:
        case "list", [(number, element, required)]:
            return t.ListType(number, element, required)
        case "map", [(key_id, key, _), (value_id, value, required)]:
            return t.MapType(key_id, key, value_id, value, required)
    return t.parse_primitive(text)


def _type(text: str) -> tuple[t.IcebergType, bool]:
    return type_of(text.removesuffix("!")), text.endswith("!")


def _parts(text: str) -> Iterator[str]:
    """Cut at the commas outside of brackets."""
    depth = start = 0
    for place, sign in enumerate(f"{text},"):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth and place > start:
            yield text[start:place]
            start = place + 1
