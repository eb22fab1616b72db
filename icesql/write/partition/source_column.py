"""A column of the table's rows at any depth of structs, by its id."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import UnsupportedTableError
from icesql.iceberg.avro_name import avro_name
from icesql.iceberg.schema import Schema
from icesql.write.casts import plain_array


def source_column(rows: pa.Table | pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """The values of a field in ``rows``, NULL where a struct around it is NULL.

    Raises UnsupportedTableError for a field that the schema has not or that lies in a list or map.
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
