"""Column types between icesql and Spark, and carriers for types that Spark lacks.

    time → bigint (µs since midnight) · uuid → string · timestamp_ns, timestamptz_ns → bigint (ns)
    fixed, geometry, geography → binary · variant → string (JSON text) · unknown → string (NULL)

Every other type is Spark's own. A carrier keeps equality and order, so it can be joined, grouped,
sorted and compared; a column that leaves the query unchanged gets its declared type back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icesql.errors import DataError
from icesql.iceberg import types as iceberg
from icesql.iceberg.transforms import uuid_text
from icesql.quoting import spark_name

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
# Spark's types without digits or parts, the kinds of declared types, and the types of Iceberg.
_ROWS: Final = [
    [column.split() for column in line.split("|")]
    for line in """
    BOOLEAN       | boolean     | boolean
    TINYINT       | tinyint     |
    SMALLINT      | smallint    |
    INT           | integer     | int
    BIGINT        | bigint      | long time timestamp_ns timestamptz_ns
    FLOAT         | float       | float
    DOUBLE        | double      | double
    DATE          | date        | date
    STRING        | varchar     |
    TIMESTAMP_NTZ | timestamp   | timestamp
    TIMESTAMP_LTZ | timestamptz | timestamptz
    BINARY        |             | fixed binary geometry geography
    """.strip().splitlines()
]
SPARK_KINDS: Final = {kind: name for (name,), kinds, _ in _ROWS for kind in kinds}
# The Spark types of the other primitive types, besides decimal, are STRING.
_SPARK_TYPES: Final = {each: name for (name,), _, types in _ROWS for each in types}
Type = TypeVar("Type")


def spark_type(node: iceberg.IcebergType) -> str:
    """The Spark SQL type that holds every value of an Iceberg type."""
    match node:
        case iceberg.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case iceberg.StructType(fields):
            inner = ", ".join(f"{spark_name(f.name)}: {spark_type(f.type)}" for f in fields)
            return f"STRUCT<{inner}>"
        case iceberg.ListType():
            return f"ARRAY<{spark_type(node.element)}>"
        case iceberg.MapType():
            return f"MAP<{spark_type(node.key)}, {spark_type(node.value)}>"
        case _:
            return _SPARK_TYPES.get(re.split(r"\W", str(node))[0], "STRING")


def ddl_of(columns: Iterable[ResultColumn]) -> str:
    """The DDL of columns of ``SPARK_KINDS`` and decimals."""
    return ", ".join(
        f"{spark_name(each.name)} {SPARK_KINDS.get(each.type.kind, each.type.name)}"
        for each in columns
    )


def spark_schema(schema: Schema) -> str:
    """The DDL of a scan's columns."""
    return ", ".join(f"{spark_name(c.name)} {spark_type(c.type)}" for c in schema.fields)


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
        case _ if is_carried(node):
            return _rebuilt(array, [(c.name, c.type) for c in iceberg.children(node)], carrier)
        case _:
            return array


def is_carried(node: iceberg.IcebergType) -> bool:
    """True if the type in Spark differs from the table's, at any depth."""
    return isinstance(node, _CARRIED) or any(is_carried(c.type) for c in iceberg.children(node))


def _rebuilt(
    array: pa.Array,
    children: Sequence[tuple[str, Type]],
    convert: Callable[[pa.Array, Type], pa.Array],
) -> pa.Array:
    """A struct, list or map with its children converted to the types of ``children``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = array.is_null() if array.null_count else None
    if isinstance(array, pa.StructArray):
        # flatten() keeps the NULLs of the struct in its children.
        parts = array.flatten()
    else:
        parts = [array.keys, array.items] if isinstance(array, pa.MapArray) else [array.values]
        # The offsets of a slice refer to the whole.
        offsets = array.offsets
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        parts = [each.slice(first, last - first) for each in parts]
        offsets = pc.subtract(offsets, offsets[0])
    made = [convert(part, kind) for part, (_, kind) in zip(parts, children, strict=True)]
    if isinstance(array, pa.StructArray):
        return pa.StructArray.from_arrays(made, names=[name for name, _ in children], mask=mask)
    return type(array).from_arrays(offsets, *made, mask=mask)


def _uuid_texts(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    from icesql.read.columns.arrow_schema import stored

    values = stored(array).to_pylist()
    texts = [None if value is None else uuid_text(value) for value in values]
    return pa.array(texts, pa.string())


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

    from icesql.engine.result_schema import arrow_type, uuids

    wanted = arrow_type(declared)
    if array.type == wanted:
        return array
    match declared.kind:
        case "uuid":
            return uuids(array)
        case "struct" | "tuple" | "list" | "map":
            return _rebuilt(array, declared.children, declared_array).cast(wanted)
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
