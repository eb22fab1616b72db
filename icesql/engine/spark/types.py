"""Column types between icesql and Spark, and carriers for types that Spark lacks.

    time → bigint (µs since midnight) · uuid → string · timestamp_ns, timestamptz_ns → bigint (ns)
    fixed, geometry, geography → binary · variant → string (JSON text) · unknown → string (NULL)

Every other type is Spark's own. A carrier keeps equality and order, so it can be joined, grouped,
sorted and compared; a column that leaves the query unchanged gets its declared type back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icesql.errors import DataError
from icesql.iceberg import types as iceberg

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.result_schema import ResultColumn, ResultType
    from icesql.iceberg.schema import Schema

_CARRIED = (
    iceberg.TimeType
    | iceberg.UUIDType
    | iceberg.TimestampNanoType
    | iceberg.TimestamptzNanoType
    | iceberg.FixedType
    | iceberg.UnknownType
)


def spark_type(node: iceberg.IcebergType) -> str:
    """The Spark SQL type that holds every value of an Iceberg type."""
    match node:
        case iceberg.BooleanType():
            return "BOOLEAN"
        case iceberg.IntegerType():
            return "INT"
        case (
            iceberg.LongType()
            | iceberg.TimeType()
            | iceberg.TimestampNanoType()
            | iceberg.TimestamptzNanoType()
        ):
            return "BIGINT"
        case iceberg.FloatType():
            return "FLOAT"
        case iceberg.DoubleType():
            return "DOUBLE"
        case iceberg.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case iceberg.DateType():
            return "DATE"
        case iceberg.TimestampType():
            return "TIMESTAMP_NTZ"
        case iceberg.TimestamptzType():
            return "TIMESTAMP_LTZ"
        case (
            iceberg.FixedType()
            | iceberg.BinaryType()
            | iceberg.GeometryType()
            | iceberg.GeographyType()
        ):
            return "BINARY"
        case iceberg.StructType(fields):
            inner = ", ".join(f"{quoted(f.name)}: {spark_type(f.type)}" for f in fields)
            return f"STRUCT<{inner}>"
        case iceberg.ListType():
            return f"ARRAY<{spark_type(node.element)}>"
        case iceberg.MapType():
            return f"MAP<{spark_type(node.key)}, {spark_type(node.value)}>"
        case _:
            return "STRING"


def spark_schema(schema: Schema) -> str:
    """The DDL of a scan's columns."""
    return ", ".join(f"{quoted(c.name)} {spark_type(c.type)}" for c in schema.fields)


def quoted(name: str) -> str:
    """A name as Spark's quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


# ------------------------------------------------------------------ to Spark


def carrier(array: pa.Array, node: iceberg.IcebergType) -> pa.Array:
    """Convert an array of ``read/`` to one that Spark accepts for ``spark_type(node)``."""
    import pyarrow as pa

    match node:
        case iceberg.TimeType() | iceberg.TimestampNanoType() | iceberg.TimestamptzNanoType():
            return array.cast(pa.int64())
        case iceberg.UUIDType():
            return _uuid_texts(array)
        case iceberg.FixedType():
            return array.cast(pa.binary())
        case iceberg.UnknownType():
            return pa.nulls(len(array), pa.string())
        case _ if not _needs_carrier(node):
            return array
        case iceberg.StructType(fields):
            # flatten() keeps the NULLs of the struct in its iceberg.children.
            inner = [carrier(a, f.type) for a, f in zip(array.flatten(), fields, strict=True)]
            return pa.StructArray.from_arrays(
                inner, names=[f.name for f in fields], mask=_mask(array)
            )
        case iceberg.ListType():
            offsets, values = _list_parts(array)
            made = carrier(values, node.element)
            return pa.ListArray.from_arrays(offsets, made, mask=_mask(array))
        case iceberg.MapType():
            offsets, keys, items = _map_parts(array)
            return _map_array(offsets, carrier(keys, node.key), carrier(items, node.value), array)
        case _:
            return array


def _needs_carrier(node: iceberg.IcebergType) -> bool:
    return isinstance(node, _CARRIED) or any(_needs_carrier(c.type) for c in iceberg.children(node))


def is_carried(node: iceberg.IcebergType) -> bool:
    """True if the type in Spark differs from the table's, at any depth."""
    return _needs_carrier(node)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _list_parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets from 0, and the values that they refer to, also for a slice."""
    import pyarrow.compute as pc

    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, offsets[0]), array.values.slice(first, last - first)


def _map_parts(array: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    import pyarrow.compute as pc

    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
    return pc.subtract(offsets, offsets[0]), keys, items


def _map_array(offsets: pa.Array, keys: pa.Array, items: pa.Array, like: pa.Array) -> pa.Array:
    import pyarrow as pa

    if not like.null_count:
        return pa.MapArray.from_arrays(offsets, keys, items)
    # A NULL offset marks a NULL map; the last offset only ends the values.
    valid = [*like.is_valid().to_pylist(), True]
    marked = [at if ok else None for at, ok in zip(offsets.to_pylist(), valid, strict=True)]
    return pa.MapArray.from_arrays(pa.array(marked, pa.int32()), keys, items)


def _uuid_texts(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    texts = [None if value is None else _uuid_text(value.hex()) for value in storage.to_pylist()]
    return pa.array(texts, pa.string())


def _uuid_text(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


# ------------------------------------------------------------------ from Spark


def declared_batch(batch: pa.RecordBatch, columns: Sequence[ResultColumn]) -> pa.RecordBatch:
    """A batch of a Spark result in the declared schema. Raises DataError."""
    import pyarrow as pa

    from icesql.engine.result_schema import arrow_schema

    arrays = []
    for array, column in zip(batch.columns, columns, strict=True):
        try:
            arrays.append(declared_array(array, column.type))
        except pa.ArrowInvalid as error:
            raise DataError(f"column {column.name}: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def declared_array(array: pa.Array, declared: ResultType) -> pa.Array:
    """An array of a Spark result in the Arrow type of its declared type.

    Raises ``pa.ArrowInvalid`` for a value that does not fit.
    """
    import pyarrow as pa

    from icesql.engine.result_schema import arrow_type

    wanted = arrow_type(declared)
    if array.type == wanted:
        return array
    match declared.kind:
        case "uuid":
            stored = [
                None if text is None else bytes.fromhex(text.replace("-", ""))
                for text in array.to_pylist()
            ]
            return pa.ExtensionArray.from_storage(wanted, pa.array(stored, pa.binary(16)))
        case "struct" | "tuple":
            inner = [
                declared_array(child, kind)
                for child, (_, kind) in zip(array.flatten(), declared.children, strict=True)
            ]
            return pa.StructArray.from_arrays(
                inner, names=[name for name, _ in declared.children], mask=_mask(array)
            ).cast(wanted)
        case "list":
            offsets, values = _list_parts(array)
            made = declared_array(values, declared.children[0][1])
            return pa.ListArray.from_arrays(offsets, made, mask=_mask(array)).cast(wanted)
        case "map":
            offsets, keys, items = _map_parts(array)
            (_, key), (_, item) = declared.children
            return _map_array(
                offsets, declared_array(keys, key), declared_array(items, item), array
            ).cast(wanted)
        case "null":
            return pa.nulls(len(array))
        case "interval":
            return _intervals(array)
        case _:
            return array.cast(wanted)


def _intervals(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    day = 86_400_000_000
    made: list[Any] = []
    for micros in array.cast(pa.int64()).to_pylist():
        if micros is None:
            made.append(None)
            continue
        # Days and time of day have one sign, as in the local engine.
        days = int(micros / day)
        made.append(pa.MonthDayNano([0, days, (micros - days * day) * 1000]))
    return pa.array(made, pa.month_day_nano_interval())
