"""The schema in which two states of a table are compared; neither has to be the later one."""

from __future__ import annotations

from msgspec.structs import replace

from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.iceberg.schema import Schema

# A type and a wider one: the type promotions of the specification that change what values mean.
_WIDER = (
    (t.DateType, t.TimestampType),
    (t.DateType, t.TimestampNanoType),
    (t.UnknownType, t.IcebergType),
)


def common_schema(wanted: Schema, other: Schema) -> Schema:
    """The columns of ``wanted`` in types that hold the values of both, matched by field ids.

    A column that is missing or may be NULL in the other state is not required.
    """
    if wanted == other:
        return wanted
    fields = _fields(wanted.fields, other.fields)
    return Schema(fields, wanted.schema_id, wanted.identifier_field_ids)


def _fields(
    wanted: tuple[t.NestedField, ...], other: tuple[t.NestedField, ...]
) -> tuple[t.NestedField, ...]:
    known = {each.field_id: each for each in other}
    made = []
    for field in wanted:
        also = known.get(field.field_id)
        if also is None:
            made.append(replace(field, required=False))
        else:
            kind = _wider(field.type, also.type)
            made.append(replace(field, type=kind, required=field.required and also.required))
    return tuple(made)


def _wider(own: t.IcebergType, other: t.IcebergType) -> t.IcebergType:
    match own, other:
        case t.StructType(), t.StructType():
            return t.StructType(_fields(own.fields, other.fields))
        case t.ListType(), t.ListType():
            required = own.element_required and other.element_required
            kind = _wider(own.element, other.element)
            return replace(own, element=kind, element_required=required)
        case t.MapType(), t.MapType():
            required = own.value_required and other.value_required
            key, value = _wider(own.key, other.key), _wider(own.value, other.value)
            return replace(own, key=key, value=value, value_required=required)
        case _:
            pairs = any(isinstance(own, a) and isinstance(other, b) for a, b in _WIDER)
            return other if pairs or is_widening(own, other) else own
