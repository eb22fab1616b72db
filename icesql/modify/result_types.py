"""Convert the columns of a query to the fields of a new table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as t
from icesql.modify.column_types import types_by_name

_KINDS: Final = types_by_name("""
boolean: boolean
int: tinyint smallint integer
long: bigint
decimal(20,0): ubigint
decimal(38,0): hugeint
float: float
double: double
date: date
time: time
timestamp: timestamp
timestamptz: timestamptz
timestamp_ns: timestamp_ns
timestamptz_ns: timestamptz_ns
string: varchar
uuid: uuid
binary: blob
variant: variant
""")
_CAST_TO: Final = {
    "null": "BIGINT or another type; a table of format version 3 can have it",
    "interval": "VARCHAR",
    "union": "a STRUCT",
}


def result_fields(
    columns: Sequence[ResultColumn], *, unknown: bool = False
) -> tuple[t.NestedField, ...]:
    """The table fields for the rows of a query, all optional, with distinct ids.

    ``unknown``: a column that has only NULL gets the type ``unknown``, which format v3 has.

    Raises UnsupportedSqlError for a type that tables cannot have.
    """
    ids = count(1)
    return tuple(
        t.NestedField(
            next(ids),
            each.name,
            t.UNKNOWN if unknown and each.type.kind == "null" else _type(each.type, each.name, ids),
        )
        for each in columns
    )


def _type(given: ResultType, name: str, ids: count[int]) -> t.IcebergType:
    match given.kind:
        case "decimal":
            return t.DecimalType(given.precision, given.scale)
        case "struct" | "tuple":
            return t.StructType(
                tuple(
                    t.NestedField(next(ids), own, _type(inner, f"{name}.{own}", ids))
                    for own, inner in given.children
                )
            )
        case "list":
            return t.ListType(next(ids), _type(given.children[0][1], name, ids))
        case "map":
            key, value = (inner for _, inner in given.children)
            key_id, value_id = next(ids), next(ids)
            return t.MapType(key_id, _type(key, name, ids), value_id, _type(value, name, ids))
        case kind if kind in _KINDS:
            return _KINDS[kind]
        case kind:
            raise UnsupportedSqlError(
                f'a table with column "{name}" of type {kind}',
                hint=f"CAST it to {_CAST_TO.get(kind, 'VARCHAR')}",
            )
