"""Store assignment: convert computed rows to rows of the table, or raise an error.

A value is stored if the column can hold it exactly. Numbers out of range and fractions for integers
are errors and never change silently; a decimal or a double becomes the nearest float, a
double a decimal only if it is the double that this decimal reads as. Strings become dates, times
and UUIDs, never numbers. Times with and without zone are converted in the session's time zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import DataError, IntegrityError, TypeMismatchError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import one_value, repeated
from icesql.write.binary_values import geometry_array, variant_array
from icesql.write.casts import (
    Misfit,
    cast_values,
    list_elements,
    list_lengths,
    map_pairs,
    null_array,
    of_rows,
    plain_array,
    refuse_infinity,
    without_nulls,
)
from icesql.write.parquet_schema import parquet_schema, stored_fields, written_type

# A column that repeats one value of the table: the default of a column without a value.


def constant_array(value: Any, type: t.IcebergType, count: int) -> pa.Array:
    """``count`` times ``value``, which is in internal form, as an array of the stored type."""
    target = written_type(type)
    if value is None:
        return null_array(count, target)
    if t.children(type):
        return pa.array([_python(value, type)] * count, target)
    return repeated(one_value(value, type), count)


def _python(value: Any, type: t.IcebergType) -> Any:
    """A nested default as a value for pyarrow."""
    if value is None:
        return None
    match type:
        case t.StructType(fields):
            made = {}
            for each in fields:
                given = value.get(each.field_id, t.MISSING)
                given = each.written_default if given is t.MISSING else given
                made[each.name] = _python(given, each.type)
            return made
        case t.ListType():
            return [_python(each, type.element) for each in value]
        case t.MapType():
            return [(_python(k, type.key), _python(v, type.value)) for k, v in value]
        case _:
            return constant_array(value, type, 1)[0].as_py()


class Assignment(Frozen):
    """Converts batches to rows of a table; picklable.

    ``sources`` has for each column of ``schema`` the index of its values in a batch, None for a
    column that the statement leaves out: it gets its write default, or NULL. ``numbered``: errors
    give the number of the row, which is useful if rows are in the order of a query. ``rewrites``:
    the rows are the table's own and keep their values, even dates and times of other writers that
    engines treat as infinite.
    """

    schema: Schema
    sources: tuple[int | None, ...]
    zone: str = "UTC"
    numbered: bool = True
    rewrites: bool = False

    def check(self, given: pa.Schema) -> None:
        """Raise TypeMismatchError for the first column whose type cannot be stored at all."""
        for field, source in zip(self.schema.fields, self.sources, strict=True):
            if source is None or not stored_fields((field,)):
                continue
            if given.field(source).type == pa.int32():
                continue  # engines give NULL this type
            empty = pa.nulls(0, given.field(source).type)
            self._column(field, empty, 0)

    def convert(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """The rows of ``batch`` in the table's Parquet schema; ``first_row`` counts from 0.

        Raises DataError and TypeMismatchError naming column and row, IntegrityError for NULL in a
        required column.
        """
        made = []
        for field, source in zip(self.schema.fields, self.sources, strict=True):
            if not stored_fields((field,)):
                self._check_unknown(field, batch, source, first_row)
                continue
            if source is None:
                made.append(self._default(field, batch.num_rows))
            else:
                made.append(self._column(field, batch.column(source), first_row))
        target = parquet_schema(self.schema)
        if not made:
            raise TypeMismatchError("the table has no column that files hold")
        return pa.RecordBatch.from_arrays(made, schema=target)

    def _check_unknown(
        self, field: t.NestedField, batch: pa.RecordBatch, source: int | None, first_row: int
    ) -> None:
        values = None if source is None else batch.column(source)
        if values is not None and values.null_count < len(values):
            row = pc.index(values.is_valid(), True).as_py()
            misfit = Misfit(row, "the column's type unknown has only NULL")
            raise self._error(field, first_row, misfit)

    def _default(self, field: t.NestedField, count: int) -> pa.Array:
        value = field.written_default
        if value is None and field.required and count:
            raise IntegrityError(
                f'column "{field.name}" is required and the statement gives it no value, or NULL'
            )
        (stored,) = stored_fields((field,))
        return constant_array(value, stored.type, count)

    def _column(self, field: t.NestedField, values: pa.Array, first_row: int) -> pa.Array:
        (stored,) = stored_fields((field,))
        try:
            if stored != field:
                values = _without_unknown(field.type, values)
            if not self.rewrites:
                refuse_infinity(values)
            return stored_array(stored, values, self.zone)
        except Misfit as misfit:
            raise self._error(field, first_row, misfit) from misfit.__cause__

    def _error(
        self, field: t.NestedField, first_row: int, misfit: Misfit
    ) -> DataError | IntegrityError:
        row = f", row {first_row + misfit.row + 1:,}" if self.numbered else ""
        if misfit.null:
            return IntegrityError(f'NULL in required column "{field.name}"{row}{misfit.reason}')
        if misfit.row < 0:
            return TypeMismatchError(f'column "{field.name}" ({field.type}): {misfit.reason}')
        return DataError(f'column "{field.name}" ({field.type}){row}: {misfit.reason}')


def _without_unknown(type: t.IcebergType, values: pa.Array) -> pa.Array:
    """``values`` of a struct without its fields of type unknown. Raises Misfit for a value in one
    that is not NULL."""
    values = plain_array(values)
    if not isinstance(type, t.StructType) or not pa.types.is_struct(values.type):
        return values
    kinds = {each.name.lower(): each.type for each in type.fields}
    present, made = values.is_valid(), {}
    for index in range(values.type.num_fields):
        name = values.type.field(index).name
        kind, inner = kinds.get(name.lower()), pc.struct_field(values, [index])
        if not isinstance(kind, t.UnknownType):
            made[name] = inner if kind is None else _without_unknown(kind, inner)
        elif pc.any(pc.and_(inner.is_valid(), present)).as_py():
            row = pc.index(pc.and_(inner.is_valid(), present), True).as_py()
            raise Misfit(row, f"the type unknown of {name} has only NULL")
    return pa.StructArray.from_arrays([*made.values()], names=[*made], mask=values.is_null())


def stored_array(field: t.NestedField, values: pa.Array, zone: str) -> pa.Array:
    """``values`` as the type of a stored field at any depth. Raises Misfit."""
    given, values = values, plain_array(values)
    target = written_type(field.type)
    if values.null_count == len(values) > 0 or pa.types.is_null(values.type):
        made = null_array(len(values), target)
    else:
        match field.type:
            case t.StructType(fields):
                made = _struct(fields, target, values, zone)
            case t.ListType():
                made = _list(field.type, target, values, zone)
            case t.MapType():
                made = _map(field.type, target, values, zone)
            case t.VariantType():
                made = variant_array(given)
            case t.GeometryType() | t.GeographyType():
                made = geometry_array(field.type, values)
            case _:
                made = _primitive(field.type, target, values, zone)
    if field.required and made.null_count:
        row = pc.index(made.is_null(), True).as_py()
        raise Misfit(row, "", null=True)
    return made


def _primitive(type: t.IcebergType, target: pa.DataType, values: pa.Array, zone: str) -> pa.Array:
    if values.type == target:
        return values
    try:
        return cast_values(type, target, values, zone)
    except TypeMismatchError as error:
        raise Misfit(-1, str(error)) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError) as error:
        row = _first_bad(type, target, values, zone)
        shown: Any = values[row]
        with suppress(ValueError, OverflowError):  # not every value has one of Python
            shown = shown.as_py()
        text = f"{shown!r:.80}" if isinstance(shown, str | bytes) else f"{shown!s:.80}"
        raise Misfit(row, f"{text} does not fit") from error


def _first_bad(type: t.IcebergType, target: pa.DataType, values: pa.Array, zone: str) -> int:
    """The row of the first value that cannot be cast, by bisection."""
    start, length = 0, len(values)
    while length > 1:
        half = length // 2
        try:
            cast_values(type, target, values.slice(start, half), zone)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError):
            length = half
        else:
            start, length = start + half, length - half
    return start


def _struct(
    fields: Sequence[t.NestedField], target: pa.DataType, values: pa.Array, zone: str
) -> pa.Array:
    if not pa.types.is_struct(values.type):
        raise Misfit(-1, f"a value of type {values.type} is no struct")
    given = [values.type.field(index).name for index in range(values.type.num_fields)]
    places = _places(given, [each.name for each in fields])
    made = []
    present = values.is_valid()
    for field, place in zip(fields, places, strict=True):
        if place is None:
            inner = constant_array(field.written_default, field.type, len(values))
            if field.required and field.written_default is None and pc.any(present).as_py():
                raise Misfit(pc.index(present, True).as_py(), f" (field {field.name})", null=True)
            inner = without_nulls(inner) if field.required else inner
        else:
            # Where the struct itself is NULL, a required field may be NULL.
            inner = _within(field, pc.struct_field(values, [place]), present, zone)
        made.append(inner)
    fields_of = [target.field(index) for index in range(target.num_fields)]
    return pa.StructArray.from_arrays(made, fields=fields_of, mask=values.is_null())


def _within(field: t.NestedField, values: pa.Array, present: pa.Array, zone: str) -> pa.Array:
    """The values of a struct field; NULL is allowed where the struct itself is NULL."""
    optional = t.NestedField(field.field_id, field.name, field.type)
    made = stored_array(optional, values, zone)
    if field.required and made.null_count:
        missing = pc.and_(made.is_null(), present)
        if pc.any(missing).as_py():
            row = pc.index(missing, True).as_py()
            raise Misfit(row, f" (field {field.name})", null=True)
        return without_nulls(made)
    return made


def _places(given: Sequence[str], wanted: Sequence[str]) -> list[int | None]:
    """For each wanted field the index of its values: by name, or by position if all are unnamed."""
    lower = [name.lower() for name in given]
    known = {name.lower() for name in wanted}
    if is_by_place(given, wanted):
        return [*range(len(given))]
    strange = [name for name in given if name.lower() not in known]
    if strange:
        raise Misfit(-1, f"the struct has no field {strange[0]!r}; it has {', '.join(wanted)}")
    # Other engines allow fields that differ only in case: an exact match goes first.
    places = [given.index(name) if name in given else None for name in wanted]
    left = {
        name: place for place, name in reversed([*enumerate(lower)]) if place not in set(places)
    }
    return [
        left.pop(name.lower(), None) if place is None else place
        for name, place in zip(wanted, places, strict=True)
    ]


def is_by_place(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """True if all names are generated by engines, and are not those of the wanted fields."""
    unnamed = all(name == "" or name == f"v{place}" for place, name in enumerate(given)) or all(
        name in ("", f"_{place}", f"col{place + 1}") for place, name in enumerate(given)
    )
    known = {name.lower() for name in wanted}
    return unnamed and len(given) == len(wanted) and {name.lower() for name in given} != known


def _list(type: t.ListType, target: pa.DataType, values: pa.Array, zone: str) -> pa.Array:
    kind = values.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind):
        values = values.cast(pa.list_(kind.value_type))
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise Misfit(-1, f"a value of type {kind} is no list")
    lengths = list_lengths(values)
    with of_rows(lengths):
        elements = stored_array(type.element_field, list_elements(values), zone)
    return pa.ListArray.from_arrays(_offsets(lengths), elements, type=target, mask=values.is_null())


def _map(type: t.MapType, target: pa.DataType, values: pa.Array, zone: str) -> pa.Array:
    if not pa.types.is_map(values.type):
        raise Misfit(-1, f"a value of type {values.type} is no map")
    pairs = map_pairs(values)
    lengths = list_lengths(pairs)
    flat = list_elements(pairs)
    with of_rows(lengths):
        keys = stored_array(type.key_field, pc.struct_field(flat, [0]), zone)
        items = stored_array(type.value_field, pc.struct_field(flat, [1]), zone)
    return pa.MapArray.from_arrays(
        _offsets(lengths), keys, items, type=target, mask=values.is_null()
    )


def _offsets(lengths: pa.Array) -> pa.Array:
    total = pc.cumulative_sum(lengths.cast(pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), total])
