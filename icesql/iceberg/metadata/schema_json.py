"""Schemas from metadata JSON, defaults included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icesql.errors import UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_int,
    as_list,
    as_object,
    optional_flag,
    optional_int,
    optional_text,
    required,
    required_int,
    required_text,
)
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value

_DEEPEST: Final = 100


def parse_schema(json: Any) -> Schema:
    """A schema from its JSON object; ``schema-id`` is 0 when absent (v1).

    Raises Malformed, or UnsupportedTableError naming a type that icesql does not know.
    """
    node = as_object(json, "schema")
    fields = _parse_fields(node, 0)
    _check_distinct_ids(fields)
    identifiers = node.get("identifier-field-ids") or []
    return Schema(
        fields,
        optional_int(node, "schema-id", "schema", 32) or 0,
        tuple(as_int(each, "identifier-field-ids", 32) for each in as_list(identifiers, "schema")),
    )


def parse_type(json: Any, depth: int = 0) -> t.IcebergType:
    """A type from its JSON form. Raises Malformed or UnsupportedTableError."""
    if depth > _DEEPEST:
        raise Malformed("type nested too deeply")
    if isinstance(json, str):
        return _parse_primitive(json)
    node = as_object(json, "type")
    match node.get("type"):
        case "struct":
            return t.StructType(_parse_fields(node, depth))
        case "list":
            return t.ListType(
                required_int(node, "element-id", "list", 32),
                parse_type(required(node, "element", "list"), depth + 1),
                optional_flag(node, "element-required", "list"),
            )
        case "map":
            return t.MapType(
                required_int(node, "key-id", "map", 32),
                parse_type(required(node, "key", "map"), depth + 1),
                required_int(node, "value-id", "map", 32),
                parse_type(required(node, "value", "map"), depth + 1),
                optional_flag(node, "value-required", "map"),
            )
        case str(name):
            return _parse_primitive(name)
        case _:
            raise Malformed("type object without type")


def _parse_primitive(text: str) -> t.IcebergType:
    try:
        found = t.parse_primitive(text.strip())
    except ValueError as error:
        raise UnsupportedTableError(f"type {text[:100]!r}") from error
    if isinstance(found, t.DecimalType) and not 0 < found.precision <= 38:
        raise UnsupportedTableError(f"type {text[:100]!r}")
    return found


def _parse_fields(node: Mapping[str, Any], depth: int) -> tuple[t.NestedField, ...]:
    listed = as_list(required(node, "fields", "struct"), "struct fields")
    return tuple(_parse_field(as_object(each, "field"), depth) for each in listed)


def _parse_field(node: Mapping[str, Any], depth: int) -> t.NestedField:
    name = required_text(node, "name", "field")
    where = f"field {name!r}"
    type = parse_type(required(node, "type", where), depth + 1)
    return t.NestedField(
        required_int(node, "id", where, 32),
        name,
        type,
        optional_flag(node, "required", where),
        optional_text(node, "doc", where),
        _default(node, "initial-default", type, where),
        _write_default(node, type, where),
    )


def _default(node: Mapping[str, Any], key: str, type: t.IcebergType, where: str) -> Any:
    if node.get(key) is None:  # null and absent both read as NULL
        return t.MISSING
    try:
        return parse_single_value(type, node[key])
    except Malformed as error:
        raise Malformed(f"{where} {key}: {error}") from error


def _write_default(node: Mapping[str, Any], type: t.IcebergType, where: str) -> Any:
    try:
        return _default(node, "write-default", type, where)
    except Malformed:
        return t.MISSING  # no reader needs it


def _check_distinct_ids(fields: tuple[t.NestedField, ...]) -> None:
    seen: dict[int, str] = {}
    for child in t.walk(fields):
        if child.field_id in seen:
            raise Malformed(
                f"fields {seen[child.field_id]!r} and {child.name!r} share id {child.field_id}"
            )
        seen[child.field_id] = child.name
