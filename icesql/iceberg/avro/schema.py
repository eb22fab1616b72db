"""Avro writer schemas as a small tree that remembers Iceberg's field ids, and names of Avro."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import Malformed, load_json

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
_DEEPEST: Final = 100
_LARGEST: Final = 100_000


# Where the type inside another is, and the ids of what is inside.
_INNER: Final = {
    "array": ("items", ("element-id",)),
    "map": ("values", ("key-id", "value-id")),
}


class OddSchema(ValueError):
    """A writer schema that this reader does not undertake to walk."""


class AvroNode(Frozen):
    """One type: ``kind`` is Avro's name of it, or "union".

    ``items`` are the branches of a union, else the one type inside an array or map. ``size`` is
    that of a fixed, ``symbols`` those of an enum, ``ids`` Iceberg's of an array's element, or of
    a map's key and value.
    """

    kind: str
    fields: tuple[AvroField, ...] = ()
    items: tuple[AvroNode, ...] = ()
    size: int = 0
    symbols: tuple[str, ...] = ()
    logical: str | None = None
    scale: int = 0
    precision: int = 0
    ids: tuple[int | None, ...] = ()

    @property
    def record(self) -> AvroNode | None:
        """The node itself if it is a record; the only record of a union."""
        if self.kind != "union":
            return self if self.kind == "record" else None
        records = [each for each in self.items if each.kind == "record"]
        return records[0] if len(records) == 1 else None

    @property
    def branches(self) -> tuple[AvroNode, ...]:
        """The types that a value may have apart from null."""
        listed = self.items if self.kind == "union" else (self,)
        return tuple(each for each in listed if each.kind != "null")

    @property
    def non_null(self) -> AvroNode | None:
        """The type beside null in an optional, the node itself if it is not a union."""
        if self.kind != "union":
            return self
        others = [each for each in self.items if each.kind != "null"]
        return others[0] if len(self.items) == 2 and len(others) == 1 else None


class AvroField(Frozen):
    """A field of a record; ``field_id`` is Iceberg's, None when the writer gave none."""

    name: str
    field_id: int | None
    node: AvroNode

    @property
    def key(self) -> str | int:
        """The key of its values in records: the id, or the name where the writer gave none."""
        return self.name if self.field_id is None else self.field_id


def parse_avro_schema(text: bytes) -> AvroNode:
    """The tree of a schema.

    Raises Malformed when it is not a schema, OddSchema when it is recursive, too deep or, with its
    type names expanded, too large.
    """
    schema = _parse(load_json(text), {}, "", 0)
    _check_expanded(schema)
    return schema


def without_logical_types(schema: Any) -> Any:
    """The schema with the stored types only."""
    if isinstance(schema, list):
        return [without_logical_types(each) for each in schema]
    if isinstance(schema, dict):
        return {
            key: without_logical_types(value)
            if key in ("type", "items", "values", "fields")
            else value
            for key, value in schema.items()
            if key not in ("logicalType", "default", "aliases")
        }
    return schema


def _check_expanded(schema: AvroNode) -> None:
    """Limit the expanded size: thirty records that each name the last twice are a billion types."""
    sizes: dict[int, tuple[int, int, AvroNode]] = {}
    stack = [schema]
    while stack:
        node = stack[-1]
        inner = [*node.items, *(field.node for field in node.fields)]
        unknown = [each for each in inner if id(each) not in sizes]
        if unknown:
            stack += unknown
            continue
        stack.pop()
        size = 1 + sum(sizes[id(each)][0] for each in inner)
        height = 1 + max((sizes[id(each)][1] for each in inner), default=0)
        if size > _LARGEST or height > 2 * _DEEPEST:
            raise OddSchema("schema with too many types inside each other")
        sizes[id(node)] = size, height, node


def _parse(json: Any, named: dict[str, AvroNode | None], space: str, depth: int) -> AvroNode:
    if depth > _DEEPEST:
        raise OddSchema("schema nested too deeply")
    if isinstance(json, str):
        return _reference(json, named, space)
    if isinstance(json, list):
        return AvroNode("union", items=tuple(_parse(e, named, space, depth + 1) for e in json))
    if not isinstance(json, dict):
        raise Malformed("not an Avro schema")
    kind = json.get("type")
    if isinstance(kind, dict | list):
        return _parse(kind, named, space, depth + 1)
    match kind:
        case "record" | "fixed" | "enum":
            return _parse_named(kind, json, named, space, depth)
        case "array" | "map":
            inner, ids = _INNER[kind]
            return AvroNode(
                kind,
                items=(_parse(json.get(inner), named, space, depth + 1),),
                logical=_logical(json),
                ids=tuple(_id(json, each) for each in ids),
            )
        case str() if kind in PRIMITIVES:
            return AvroNode(kind, **_attributes(json))
        case str():
            return _reference(kind, named, space)
        case _:
            raise Malformed("Avro schema without type")


def _parse_named(
    kind: str, json: Mapping[str, Any], named: dict[str, AvroNode | None], space: str, depth: int
) -> AvroNode:
    name = str(json.get("name", ""))
    space = str(json.get("namespace", name.rpartition(".")[0] or space))
    full = name if "." in name or not space else f"{space}.{name}"
    named[full] = None  # met again before it is complete: recursive
    if kind == "fixed":
        node = AvroNode(kind, size=_size(json), **_attributes(json))
    elif kind == "enum":
        symbols = json.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise Malformed("Avro enum without symbols")
        node = AvroNode(kind, symbols=tuple(symbols))
    else:
        listed = json.get("fields")
        if not isinstance(listed, list):
            raise Malformed("Avro record without fields")
        node = AvroNode(
            kind, fields=tuple(_parse_field(each, named, space, depth) for each in listed)
        )
    named[full] = node
    return node


def _parse_field(json: Any, named: dict[str, AvroNode | None], space: str, depth: int) -> AvroField:
    if not isinstance(json, dict) or not isinstance(json.get("name"), str):
        raise Malformed("Avro field without name")
    return AvroField(
        json["name"],
        _id(json, "field-id"),
        _parse(json.get("type"), named, space, depth + 1),
    )


def _reference(name: str, named: Mapping[str, AvroNode | None], space: str) -> AvroNode:
    if name in PRIMITIVES:
        return AvroNode(name)
    for full in (f"{space}.{name}", name):
        if full in named:
            found = named[full]
            if found is None:
                raise OddSchema(f"recursive type {name!r}")
            return found
    raise Malformed(f"unknown Avro type {name[:100]!r}")


def _id(json: Mapping[str, Any], key: str) -> int | None:
    value = json.get(key)
    return value if type(value) is int else None


def _attributes(json: Mapping[str, Any]) -> dict[str, Any]:
    precision = _id(json, "precision") or 0
    return {"logical": _logical(json), "scale": _scale(json), "precision": precision}


def _logical(json: Mapping[str, Any]) -> str | None:
    logical = json.get("logicalType")
    return logical if isinstance(logical, str) else None


def _scale(json: Mapping[str, Any]) -> int:
    scale = json.get("scale", 0)
    if type(scale) is not int or not 0 <= scale <= 1000:
        raise Malformed("Avro decimal with an impossible scale")
    return scale


def _size(json: Mapping[str, Any]) -> int:
    size = json.get("size")
    if type(size) is not int or size < 0:
        raise Malformed("Avro fixed without size")
    return size


# ------------------------------------------------------------------ names


_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_name(name: str) -> str:
    """``name`` with ``_`` before a first digit and ``_x<HEX>`` for each other illegal character.

    >>> avro_name("a.b"), avro_name("9x"), avro_name("é"), avro_name("😀"), avro_name("plain")
    ('a_x2Eb', '_9x', '_xE9', '_xD83D_xDE00', 'plain')

    Source: Java's AvroSchemaUtil.sanitize, which looks at UTF-16 units.
    """
    if _LEGAL.fullmatch(name):
        return name
    data = name.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return "".join(_sanitised(unit, first=place == 0) for place, unit in enumerate(units))


def _sanitised(unit: int, *, first: bool) -> str:
    letter = chr(unit)
    if letter == "_" or (letter.isascii() and letter.isalpha()):
        return letter
    if letter.isascii() and letter.isdigit():
        return f"_{letter}" if first else letter
    return f"_x{unit:X}"
