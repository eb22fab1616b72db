"""The schema of the table's Parquet files: every field with its id, nothing of type unknown."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from icesql.errors import UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import FIELD_ID, arrow_type


def stored_fields(fields: tuple[t.NestedField, ...]) -> tuple[t.NestedField, ...]:
    """The fields that files hold: those of type unknown, and structs of nothing else, are left out.

    Raises UnsupportedTableError for a list or map of them and for types that are not written yet.
    """
    return tuple(found for each in fields if (found := _stored(each, each.name)) is not None)


def _stored(field: t.NestedField, name: str) -> t.NestedField | None:
    match field.type:
        case t.UnknownType():
            return None
        case t.VariantType() | t.GeometryType() | t.GeographyType():
            raise UnsupportedTableError(f"writing column {name} of type {field.type}")
        case t.StructType(fields):
            inner = tuple(
                found
                for each in fields
                if (found := _stored(each, f"{name}.{each.name}")) is not None
            )
            return replace(field, type=t.StructType(inner)) if inner else None
        case t.ListType() | t.MapType():
            kept = [_stored(each, f"{name}.{each.name}") for each in t.children(field.type)]
            if any(each is None for each in kept):
                raise UnsupportedTableError(f"writing column {name}, a collection of type unknown")
            types = [each.type for each in kept if each is not None]
            if isinstance(field.type, t.ListType):
                return replace(field, type=replace(field.type, element=types[0]))
            return replace(field, type=replace(field.type, key=types[0], value=types[1]))
        case _:
            return field


def parquet_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that makes pyarrow write what the specification asks for.

    Names are those that Avro allows, as Java writes them; readers go by ids. A required field is
    not nullable. Raises UnsupportedTableError as ``stored_fields``.
    """
    return pa.schema([_field(each) for each in stored_fields(schema.fields)])


def _field(field: t.NestedField) -> pa.Field:
    return pa.field(
        avro_name(field.name),
        written_type(field.type),
        nullable=not field.required,
        metadata={FIELD_ID: str(field.field_id).encode()},
    )


def written_type(type: t.IcebergType) -> pa.DataType:
    """The Arrow type of a stored type, with ids and nullability of what is in it."""
    match type:
        case t.StructType(fields):
            return pa.struct([_field(each) for each in fields])
        case t.ListType():
            return pa.list_(_field(type.element_field))
        case t.MapType():
            return pa.map_(_field(type.key_field), _field(type.value_field))
        case _:
            return arrow_type(type)


def leaf_ids(schema: Schema) -> tuple[int, ...]:
    """The id of each column of a file, in the order in which Parquet has them."""
    return tuple(_leaves(stored_fields(schema.fields)))


def _leaves(fields: tuple[t.NestedField, ...]) -> Iterator[int]:
    for each in fields:
        inner = t.children(each.type)
        if inner:
            yield from _leaves(inner)
        else:
            yield each.field_id
