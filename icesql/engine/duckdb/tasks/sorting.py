"""Sort rows by key columns in bounded memory: DuckDB sorts and spills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.tasks.rows import batches_of, engine_batches
from icesql.engine.result_schema import cast_batch
from icesql.engine.struct_names import engine_arrow_type
from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa


class KeyOrder(Frozen):
    """The direction of one key column."""

    descending: bool = False
    nulls_first: bool = False


def sorted_batches(
    batches: Iterable[tuple[pa.RecordBatch, Sequence[pa.Array]]],
    schema: pa.Schema,
    key_types: Sequence[pa.DataType],
    orders: Sequence[KeyOrder],
    query: QueryContext,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``batches`` (of ``schema``, each with its keys), ordered by the keys.

    Columns that DuckDB would change are converted before sorting and converted back after. Raises
    UnsupportedTableError for a nested column that cannot be converted.
    """
    import pyarrow as pa

    carried = pa.schema(
        [pa.field(f"c{n}", _carried(each.type, each.name)) for n, each in enumerate(schema)]
    )
    key_fields = [pa.field(f"k{n}", kind) for n, kind in enumerate(key_types)]
    stream_schema = pa.schema([*carried, *key_fields])

    def opened() -> Iterator[pa.RecordBatch]:
        for batch, keys in batches:
            columns = cast_batch(batch, carried).columns
            yield pa.RecordBatch.from_arrays([*columns, *keys], schema=stream_schema)

    def rows(cursor: Any, streams: list[ArrowStream]) -> Iterator[pa.RecordBatch]:
        stream = ArrowStream(stream_schema, opened)
        streams.append(stream)
        register(cursor, "__rows", stream)
        columns = ", ".join(quoted(f"c{n}") for n in range(len(carried)))
        keys = ", ".join(
            f"{quoted(f'k{n}')} {'DESC' if each.descending else 'ASC'} "
            f"NULLS {'FIRST' if each.nulls_first else 'LAST'}"
            for n, each in enumerate(orders)
        )
        return batches_of(cursor, f'SELECT {columns} FROM "__rows" ORDER BY {keys}', {}, query)

    for batch in engine_batches(rows, set(), (), query):
        columns = [
            _back(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield cast_batch(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)


def _carried(kind: pa.DataType, name: str) -> pa.DataType:
    """The type of a column for sorting: DuckDB has no nanoseconds with a zone, and no FIXED."""
    import pyarrow as pa

    if _has_zoned_nanos(kind):
        if pa.types.is_nested(kind):
            raise UnsupportedTableError(f"sorting rows with column {name} of type {kind}")
        return pa.int64()
    if kind == pa.uuid() or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return engine_arrow_type(kind)


def _has_zoned_nanos(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_has_zoned_nanos(kind.field(n).type) for n in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "ns")


def _back(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A sorted column in a type that ``cast_batch`` casts to its own."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, column.cast(pa.binary(16)))
    return column
