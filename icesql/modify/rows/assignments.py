"""The new values of rows: assigned by UPDATE, or variants that are read from their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    UnsupportedSqlError,
    similar_names,
)
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import POS, Schema, fields_named
from icesql.modify.targets import without_qualifier
from icesql.read.columns.arrow_schema import arrow_type
from icesql.read.deletes.scan_deletes import by_file
from icesql.read.task import read_file
from icesql.sql.writes.statements import ColumnValue
from icesql.write.assignment import constant_array
from icesql.write.casts import plain_array
from icesql.write.parquet_schema import with_binary_variants

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf


# What the fields of a struct, by their ids, are changed to: a key of the new value, None for the
# field's default, or the same for the fields of an inner struct.
Places = Mapping[int, "Any"]


class Assigned(Frozen):
    """The assignments of a statement, by the columns of ``schema``.

    ``places`` maps a field id to the number of its assignment, None for DEFAULT; for a struct of
    which only some fields are assigned, to a mapping of these.
    """

    schema: Schema
    places: Places

    @property
    def old(self) -> tuple[t.NestedField, ...]:
        """The columns whose old values the new rows use."""
        return tuple(
            each
            for each in self.schema.fields
            if isinstance(self.places.get(each.field_id, {}), Mapping)
        )

    @property
    def sources(self) -> tuple[int | None, ...]:
        """The column indices in ``rows``, None for a default."""
        return tuple(
            None if self.places.get(field.field_id, {}) is None else index
            for index, field in enumerate(self.schema.fields)
        )

    def rows(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The new rows of one batch, with the columns of the schema in its order.

        The batch has the columns ``old`` from ``first`` on, then the values of the assignments. All
        keep the engine's types; only assembled structs are plain Arrow structs.
        """
        fields, end = self.schema.fields, first + len(self.old)
        old, values = iter(batch.columns[first:end]), batch.columns[end:]
        made = []
        for field in fields:
            place = self.places.get(field.field_id, {})
            if isinstance(place, Mapping):
                own = next(old)
                made.append(with_fields(own, field.type, place, values) if place else own)
            else:
                made.append(pa.nulls(batch.num_rows) if place is None else values[place])
        return pa.RecordBatch.from_arrays(made, names=[each.name for each in fields])


def with_fields(old: pa.Array, kind: t.IcebergType, places: Places, values: Any) -> pa.Array:
    """A struct with new values in some of its fields: ``values`` by the keys in ``places``.

    ``old`` are the engine's values of the struct ``kind``; for a NULL struct the other fields
    become NULL.
    """
    assert isinstance(kind, t.StructType)
    old = plain_array(old)
    made = []
    for index, field in enumerate(kind.fields):
        # Fields that this statement adds to the struct follow its existing fields.
        own = pc.struct_field(old, [index]) if index < old.type.num_fields else pa.nulls(len(old))
        place = places.get(field.field_id, {})
        if place is None:
            own = constant_array(field.written_default, field.type, len(old))
        elif not isinstance(place, Mapping):
            own = values[place]
        elif place:
            if pa.types.is_null(own.type):
                own = pa.nulls(len(own), pa.struct([]))
            own = with_fields(own, field.type, place, values)
        made.append(own)
    return pa.StructArray.from_arrays(made, names=[each.name for each in kind.fields])


def put(places: Any, path: Sequence[int], key: Any) -> bool:
    """Put a key at a path of field ids; False where it, or a part of it, has one already."""
    *above, last = path
    for each in above:
        places = places.setdefault(each, {})
        if not isinstance(places, dict):
            return False
    if last in places:
        return False
    places[last] = key
    return True


def assigned(
    columns: Sequence[ColumnValue], schema: Schema, names: Sequence[tuple[str, ...]]
) -> Assigned:
    """Resolve assignments to columns of a schema; ``names`` are the table's possible qualifiers.

    Raises ColumnNotFoundError, UnsupportedSqlError for a part of a list or map, and
    ProgrammingError for a column that is assigned twice.
    """
    places: dict[int, Any] = {}
    for number, column in enumerate(columns):
        path = [each.field_id for each in _fields(column, schema, names)]
        if not put(places, path, None if column.default else number):
            raise ProgrammingError(f'column "{".".join(column.path)}" is assigned twice')
    return Assigned(schema, places)


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


# ------------------------------------------------------------------ variants that are not assigned
# The engine returns a variant as JSON text, which loses type information: a date becomes a string.


_KEPT_BYTES: Final = 256 << 20


def has_variants(field: t.NestedField) -> bool:
    """True if the field is or contains a variant."""
    return any(isinstance(each.type, t.VariantType) for each in t.walk((field,)))


class StoredVariants(Struct):
    """Columns of a table that contain variants, read file by file on demand.

    ``places`` maps the indices of batch columns to replace to their fields; ``kept`` has the files
    that were read last.
    """

    files_of: FilesOf
    places: Mapping[int, t.NestedField]
    query: QueryContext
    kept: dict[str, pa.Table] = {}

    @property
    def projection(self) -> Schema:
        """The columns to read, followed by the position."""
        return with_binary_variants(Schema((*self.places.values(), POS)))

    def put_into(self, batch: pa.RecordBatch, file: int, pos: int) -> pa.RecordBatch:
        """Replace variant columns by stored values; columns ``file`` and ``pos`` locate the rows.

        Raises what reading a file raises.
        """
        if not self.places:
            return batch
        found = self._rows(batch.column(file), batch.column(pos)) if batch.num_rows else None
        columns, fields = [*batch.columns], [*batch.schema]
        for number, (place, own) in enumerate(
            zip(self.places, self.projection.fields, strict=False)
        ):
            kind = arrow_type(own.type)
            columns[place] = pa.nulls(0, kind) if found is None else found.column(number)
            fields[place] = fields[place].with_type(kind)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _rows(self, files: pa.Array, positions: pa.Array) -> pa.RecordBatch:
        wanted = positions.to_numpy(zero_copy_only=False)
        parts, order = [], []
        for path, rows in by_file(files, np.arange(len(files))):
            table = self._of_file(path)
            places = table.column(table.num_columns - 1).to_numpy()
            parts.append(table.take(pa.array(np.searchsorted(places, wanted[rows]))))
            order.append(rows)
        back = np.argsort(np.concatenate(order))
        return pa.concat_tables(parts).take(pa.array(back)).combine_chunks().to_batches()[0]

    def _of_file(self, path: str) -> pa.Table:
        """The columns of all rows of a file, including deleted rows, ordered by position."""
        known = self.kept.pop(path, None)
        if known is None:
            known = self._read(path)
        self.kept[path] = known
        while len(self.kept) > 1 and sum(each.nbytes for each in self.kept.values()) > (
            _KEPT_BYTES
        ):
            self.kept.pop(next(iter(self.kept)))
        return known

    def _read(self, path: str) -> pa.Table:
        (task,), context = self.files_of(self.projection, {path})
        whole = replace(task, deletes=())
        batches = list(read_file(whole, context, self.query))
        found = pa.Table.from_batches(batches)
        order = pc.sort_indices(found.column(found.num_columns - 1))
        return found.take(order)
