"""Sort rows by a table's sort order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.metadata.sort_order import SortOrder
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import UnknownTransform, parse_transform
from icesql.write.casts import plain_array
from icesql.write.partition.partition_values import internal_array, partition_array

# Finds a column of the table's rows by its id, at any depth of structs.


def source_column(rows: pa.Table | pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """The values of a field in ``rows``, NULL where an enclosing struct is NULL.

    Raises UnsupportedTableError for a field that is missing in the schema or inside a list or map.
    """
    field = schema.field_by_id.get(field_id)
    if field is None or schema.inside_repeated(field_id):
        raise UnsupportedTableError(f"partitioning or sorting by field {field_id}")
    path = [*reversed([each.name for each in schema.ancestors(field_id)]), field.name]
    values = rows.column(avro_name(path[0]))
    for name in path[1:]:
        values = pc.struct_field(values, avro_name(name))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return plain_array(values) if isinstance(values, pa.ChunkedArray) else values


class SortKey(Frozen):
    """One key: a column, its transform, and its directions."""

    source_id: int
    transform: str
    descending: bool
    nulls_first: bool


def sort_keys(order: SortOrder, schema: Schema) -> tuple[SortKey, ...] | None:
    """The keys of an order; None if icesql cannot sort by it."""
    keys = []
    for each in order.fields:
        source = schema.field_by_id.get(each.source_ids[0])
        transform = parse_transform(each.transform)
        if len(each.source_ids) != 1 or source is None or isinstance(transform, UnknownTransform):
            return None
        if not transform.accepts(source.type) or schema.inside_repeated(source.field_id):
            return None
        nulls_first = each.null_order == "nulls-first"
        keys.append(SortKey(source.field_id, each.transform, each.direction == "desc", nulls_first))
    return tuple(keys)


def sorted_rows(table: pa.Table, schema: Schema, keys: Sequence[SortKey]) -> pa.Table:
    """``table`` sorted by ``keys``; the sort is stable.

    -0.0 comes before 0.0, NaN after every number, NULL where the key says.
    """
    columns: list[Any] = []
    directions = []
    for number, key in enumerate(keys):
        values = key_values(source_column(table, schema, key.source_id), schema, key)
        columns += [values.is_null(), values]
        directions.append((f"n{number}", "descending" if key.nulls_first else "ascending"))
        directions.append((f"v{number}", "descending" if key.descending else "ascending"))
    names = [name for name, _ in directions]
    order = pc.sort_indices(pa.table(columns, names=names), sort_keys=directions)
    return table.take(order)


def key_values(values: pa.Array, schema: Schema, key: SortKey) -> pa.Array:
    """The values to compare rows by, in a type that Arrow can sort."""
    type = schema.type_of(key.source_id)
    transform = parse_transform(key.transform)
    made = partition_array(transform, type, internal_array(values, type))
    if pa.types.is_boolean(made.type):
        return made.cast(pa.int8())
    if pa.types.is_fixed_size_binary(made.type):
        return made.cast(pa.binary())
    if not t.is_floating(transform.result_type(type)):
        return made
    nulls = made.is_null().to_numpy(zero_copy_only=False)
    return pa.array(ordered_floats(made), mask=np.asarray(nulls))


def ordered_floats(values: pa.Array) -> npt.NDArray[np.int64]:
    """Floats as integers that sort in the IEEE total order; NULL as zero."""
    doubles = pc.fill_null(values.cast(pa.float64()), 0.0)
    numbers = doubles.to_numpy(zero_copy_only=False).copy()
    numbers[np.isnan(numbers)] = np.nan  # one NaN, above all
    bits: npt.NDArray[np.int64] = numbers.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
