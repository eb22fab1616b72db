"""Columns as a line of text: ``1 id long!, 2 s struct<3 x int>, 4 l list<5 string>``.

Each is its id, its name and its type, ``!`` where it is required, and ``= "x"`` with its initial
default as JSON. Types are spelled as metadata spells them; of a list the element has an id alone,
of a map ``map<6 string, 7 long!>`` the key and the value have. Ids may be left out: then they count
in the order of the text, that of an element before those within it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.metadata.schema_json import parse_type
from icesql.iceberg.metadata.writing import type_json
from icesql.iceberg.single_value import parse_single_value
from icesql.write.parquet_schema import written_type


def columns(text: str, first: int = 1) -> tuple[t.NestedField, ...]:
    """The columns of a line; ids that it leaves out count from ``first``."""
    return _columns(text, count(first))


def json_columns(text: str, first: int = 1) -> list[dict[str, Any]]:
    """The columns of a line as metadata has them."""
    found: Any = type_json(t.StructType(columns(text, first)))
    return list(found["fields"])


def _columns(text: str, ids: Iterator[int]) -> tuple[t.NestedField, ...]:
    return tuple(_column(each, ids) for each in _parts(text))


def _column(text: str, ids: Iterator[int]) -> t.NestedField:
    number, text = _numbered(text, ids)
    name, _, rest = text.partition(" ")
    # What ends with a bracket has defaults of its fields alone.
    rest, _, default = (rest, "", "") if rest.endswith(">") else rest.partition(" = ")
    type, required = _type(rest, ids)
    value = parse_single_value(type, json.loads(default)) if default else t.MISSING
    return t.NestedField(number, name, type, required, initial_default=value)


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
    """The type of a text, which may be nested, or the JSON of metadata."""
    return _type(text, count(1))[0]


def _type(text: str, ids: Iterator[int]) -> tuple[t.IcebergType, bool]:
    bare = text.removesuffix("!")
    kind, _, inner = bare.removesuffix(">").partition("<")
    if bare.startswith("{"):
        return parse_type(json.loads(bare)), bare != text
    if kind == "struct":
        return t.StructType(_columns(inner, ids)), bare != text
    inner_types = [
        (number, *_type(rest, ids))
        for number, rest in (_numbered(each, ids) for each in _parts(inner))
    ]
    found: t.IcebergType
    match kind, inner_types:
        case "list", [(number, element, required)]:
            found = t.ListType(number, element, required)
        case "map", [(key_id, key, _), (value_id, value, required)]:
            found = t.MapType(key_id, key, value_id, value, required)
        case _:
            found = t.parse_primitive(bare)
    return found, bare != text


def _numbered(text: str, ids: Iterator[int]) -> tuple[int, str]:
    number, _, rest = text.removeprefix(" ").partition(" ")
    return (int(number), rest) if number.isdecimal() else (next(ids), text.removeprefix(" "))


def _parts(text: str) -> Iterator[str]:
    """Cut at the commas outside of brackets."""
    depth = start = 0
    for place, sign in enumerate(f"{text},"):
        depth += (sign in "<({[") - (sign in ">)}]")
        if sign == "," and not depth and place > start:
            yield text[start:place]
            start = place + 1
