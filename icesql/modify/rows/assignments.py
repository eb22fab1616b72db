"""Resolve UPDATE's assignments to columns and struct fields, and compute the new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    UnsupportedSqlError,
    similar_names,
)
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.modify.targets import fields_named, without_qualifier
from icesql.sql.writes.statements import ColumnValue
from icesql.write.assignment import constant_array
from icesql.write.casts import plain_array

# The number of the assignment to a field, or the same for the fields of a struct.
Places = Mapping[int, "int | Places"]
# The values of some fields of a struct, by field id. None means the field's default; a mapping has
# the values of inner fields.
Given = Mapping[int, "pa.Array | Given | None"]


class Assigned(Struct, frozen=True):
    """The assignments of a statement, by the columns of ``schema``.

    ``places`` maps a field id to the number of its assignment; for a struct of which only some
    fields are assigned, to a mapping of these. ``defaults`` has the numbers of assignments of
    DEFAULT.
    """

    schema: Schema
    places: Places
    defaults: frozenset[int]

    @property
    def old(self) -> tuple[t.NestedField, ...]:
        """The columns whose old values the new rows use."""
        return tuple(
            each
            for each in self.schema.fields
            if not isinstance(self.places.get(each.field_id), int)
        )

    @property
    def sources(self) -> tuple[int | None, ...]:
        """The column indices in ``rows``, None for a default."""
        found = [self.places.get(field.field_id) for field in self.schema.fields]
        return tuple(
            None if isinstance(each, int) and each in self.defaults else place
            for place, each in enumerate(found)
        )

    def rows(self, old: Sequence[pa.Array], values: Sequence[pa.Array]) -> pa.RecordBatch:
        """The new rows of one batch, with the columns of the schema in its order.

        ``old`` are the arrays of the columns ``old``, ``values`` those of the assignments. All keep
        the engine's types; only assembled structs are plain Arrow structs.
        """
        known = dict(zip((each.field_id for each in self.old), old, strict=True))
        made = []
        for field in self.schema.fields:
            place = self.places.get(field.field_id)
            if isinstance(place, int):
                made.append(values[place])
            elif place is None:
                made.append(known[field.field_id])
            else:
                given = self._given(place, values)
                made.append(with_fields(known[field.field_id], field.type, given))
        return pa.RecordBatch.from_arrays(made, names=[each.name for each in self.schema.fields])

    def _given(self, places: Places, values: Sequence[pa.Array]) -> Given:
        """The values of the fields of a struct, as ``with_fields`` takes them."""
        return {
            field_id: self._given(place, values)
            if isinstance(place, Mapping)
            else None
            if place in self.defaults
            else values[place]
            for field_id, place in places.items()
        }


def with_fields(old: pa.Array, kind: t.IcebergType, given: Given) -> pa.Array:
    """A struct with new values in some of its fields.

    ``old`` are the engine's values of the struct ``kind``; for a NULL struct the other fields
    become NULL.
    """
    assert isinstance(kind, t.StructType)
    old = plain_array(old)
    made = []
    for index, field in enumerate(kind.fields):
        # Fields that this statement adds to the struct follow its existing fields.
        own = pc.struct_field(old, [index]) if index < old.type.num_fields else pa.nulls(len(old))
        value = given.get(field.field_id, own)
        if isinstance(value, Mapping):
            if pa.types.is_null(own.type):
                own = pa.nulls(len(own), pa.struct([]))
            value = with_fields(own, field.type, value)
        elif value is None:
            value = constant_array(field.written_default, field.type, len(old))
        made.append(value)
    return pa.StructArray.from_arrays(made, names=[each.name for each in kind.fields])


def assigned(
    columns: Sequence[ColumnValue], schema: Schema, names: Sequence[tuple[str, ...]]
) -> Assigned:
    """Resolve assignments to columns of a schema; ``names`` are the table's possible qualifiers.

    Raises ColumnNotFoundError, UnsupportedSqlError for a part of a list or map, and
    ProgrammingError for a column that is assigned twice.
    """
    places: dict[int, object] = {}
    defaults = set()
    for number, column in enumerate(columns):
        fields = _fields(column, schema, names)
        inner = places
        for each in fields[:-1]:
            below = inner.setdefault(each.field_id, {})
            if not isinstance(below, dict):
                raise _twice(column)
            inner = below
        if fields[-1].field_id in inner:
            raise _twice(column)
        inner[fields[-1].field_id] = number
        if column.default:
            defaults.add(number)
    return Assigned(schema, places, frozenset(defaults))  # type: ignore[arg-type]


def _twice(column: ColumnValue) -> ProgrammingError:
    return ProgrammingError(f'column "{".".join(column.path)}" is assigned twice')


def _fields(
    column: ColumnValue, schema: Schema, names: Sequence[tuple[str, ...]]
) -> list[t.NestedField]:
    """The column, and the fields inside of it, along a path."""
    path = without_qualifier(column.path, names, schema) or column.path
    top = schema.find_column(path[0])
    if top is None:
        similar = similar_names(path[0], [each.name for each in schema.fields])
        raise ColumnNotFoundError(".".join(path), similar=similar, offset=column.offset)
    found = [top]
    for name in path[1:]:
        kind = found[-1].type
        if isinstance(kind, t.ListType | t.MapType):
            raise UnsupportedSqlError(
                f"SET of a part of {found[-1].name}, which is a {kind}",
                hint="assign the whole column",
                offset=column.offset,
            )
        inner = kind.fields if isinstance(kind, t.StructType) else ()
        near = fields_named(name, inner)
        if not near:
            similar = similar_names(name, [each.name for each in inner])
            raise ColumnNotFoundError(".".join(path), similar=similar, offset=column.offset)
        found.append(near[0])
    return found
