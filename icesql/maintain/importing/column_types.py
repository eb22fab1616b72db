"""Check that the columns of a Parquet file have the types of a table, as every reader sees them.

Only equal types and Iceberg's type promotions are accepted: readers differ on unsigned integers,
on milliseconds and on bytes for a string column, and some would return other values.
Source: Iceberg spec, "Parquet" (data types) and "Schema Evolution"; Java
``MessageTypeToType``, which maps Parquet types to Iceberg types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from icesql.errors import CorruptFileError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.read.columns.convert import leaf_reader
from icesql.read.columns.variant import variant_reader
from icesql.read.formats.file_fields import FileField, is_list

_INTEGER_BITS: Final = {"INT32": 32, "INT64": 64}


def check_types(
    columns: Iterable[t.NestedField],
    fields: Sequence[FileField],
    parquet: Any,
    path: str,
    *,
    table: str,
) -> None:
    """Raise TypeMismatchError if a file's column does not fit the type of the table's column.

    ``fields`` are the file's fields with their ids in the table, ``parquet`` is its
    ``pyarrow.parquet.ParquetSchema``. Columns that the table does not have are ignored.
    Raises CorruptFileError if the two describe different columns.
    """
    leaves = tuple(parquet.column(index) for index in range(len(parquet)))
    if sum(map(_leaf_count, fields)) != len(leaves):
        raise CorruptFileError(path, "its schema and its row groups have other columns")
    _Check(path, table, iter(leaves)).fields(columns, fields, "")


def _leaf_count(field: FileField) -> int:
    return sum(map(_leaf_count, field.children)) if field.children else 1


class _Check:
    """A walk over a file's fields; ``leaves`` are its Parquet columns, taken one by one."""

    def __init__(self, path: str, table: str, leaves: Iterator[Any]) -> None:
        self._path, self._table, self._leaves = path, table, leaves

    def fields(
        self, columns: Iterable[t.NestedField], fields: Sequence[FileField], prefix: str
    ) -> None:
        own = {each.field_id: each for each in columns}
        for each in fields:
            column = None if each.field_id is None else own.get(each.field_id)
            if column is None:
                self._skip(each)
            else:
                self._field(column, each, f"{prefix}{column.name}")

    def _skip(self, field: FileField) -> None:
        for _ in range(_leaf_count(field)):
            next(self._leaves)

    def _field(self, column: t.NestedField, field: FileField, name: str) -> None:
        type = column.type
        match type:
            case t.StructType(inner) if pa.types.is_struct(field.type):
                self.fields(inner, field.children, f"{name}.")
            case t.ListType() if is_list(field.type):
                self._field(type.element_field, field.children[0], f"{name}.element")
            case t.MapType() if pa.types.is_map(field.type):
                key, value = field.children
                self._field(type.key_field, key, f"{name}.key")
                self._field(type.value_field, value, f"{name}.value")
            case t.VariantType() if variant_reader(field.type) is not None:
                self._skip(field)
            case _ if field.children or t.children(type):
                self._refuse(name, type, str(field.type))
            case _:
                leaf = next(self._leaves)
                stored = stored_type(leaf)
                taken = stored is not None and is_widening(stored, type)
                if not taken or leaf_reader(field.type, type) is None:
                    self._refuse(name, type, _spelled(leaf))

    def _refuse(self, name: str, type: t.IcebergType, found: str) -> None:
        raise TypeMismatchError(
            f'cannot add {self._path}: its column "{name}" is stored as {found}, and that of '
            f"{self._table} is {type}; files are taken as they lie where types are equal or widen: "
            "int to long, float to double, decimal to more digits of the same scale; "
            f"INSERT INTO {self._table} SELECT … FROM read_parquet('{self._path}') converts values"
        )


def stored_type(leaf: Any) -> t.IcebergType | None:
    """The Iceberg type of a ``pyarrow.parquet.ColumnSchema``; None if there is none."""
    physical, length = leaf.physical_type, leaf.length
    logical = json.loads(leaf.logical_type.to_json())
    match physical, logical["Type"]:
        case "BOOLEAN", "None":
            return t.BooleanType()
        case "INT32", "None":
            return t.IntegerType()
        case "INT64", "None":
            return t.LongType()
        case "INT32" | "INT64", "Int":
            return _integer(logical) if logical["bitWidth"] <= _INTEGER_BITS[physical] else None
        case "FLOAT", "None":
            return t.FloatType()
        case "DOUBLE", "None":
            return t.DoubleType()
        case "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY", "Decimal":
            return t.DecimalType(logical["precision"], logical["scale"])
        case "INT32", "Date":
            return t.DateType()
        case "INT64", "Time":
            return t.TimeType() if logical["timeUnit"] == "microseconds" else None
        case "INT64", "Timestamp":
            return _timestamp(logical["timeUnit"], is_utc=logical["isAdjustedToUTC"])
        case "INT96", _:
            return t.TimestamptzType()  # older engines write INT96 for instants
        case "BYTE_ARRAY", "String" | "Enum" | "JSON":
            return t.StringType()
        case "BYTE_ARRAY", "None" | "BSON":
            return t.BinaryType()
        case "FIXED_LEN_BYTE_ARRAY", "None":
            return t.FixedType(length)
        case "FIXED_LEN_BYTE_ARRAY", "UUID":
            return t.UUIDType()
        case "BYTE_ARRAY", "Geometry":
            return t.GeometryType(*_given(logical, "crs"))
        case "BYTE_ARRAY", "Geography":
            return t.GeographyType(*_given(logical, "crs", "algorithm"))
        case _:
            return None


def _integer(logical: dict[str, Any]) -> t.IcebergType | None:
    if not logical["isSigned"]:
        return None
    return t.LongType() if logical["bitWidth"] == 64 else t.IntegerType()


def _timestamp(unit: str, *, is_utc: bool) -> t.IcebergType | None:
    match unit:
        case "microseconds":
            return t.TimestamptzType() if is_utc else t.TimestampType()
        case "nanoseconds":
            return t.TimestamptzNanoType() if is_utc else t.TimestampNanoType()
        case _:
            return None  # milliseconds, which readers of Iceberg would treat as microseconds


def _given(logical: dict[str, Any], crs: str, algorithm: str | None = None) -> tuple[str, ...]:
    """The parameters of a geometry type, with defaults for missing ones."""
    found = (logical.get(crs) or t.GeometryType().crs,)
    return found if algorithm is None else (*found, logical.get(algorithm) or "spherical")


def _spelled(leaf: Any) -> str:
    """A Parquet type as messages show it, such as ``INT32 (Int, 8 bits, unsigned)``."""
    logical = json.loads(leaf.logical_type.to_json())
    kind = logical["Type"]
    details = []
    match kind:
        case "None":
            return f"{leaf.physical_type}({leaf.length})" if leaf.length else leaf.physical_type
        case "Int":
            sign = "signed" if logical["isSigned"] else "unsigned"
            details = [f"{logical['bitWidth']} bits", sign]
        case "Decimal":
            details = [f"precision {logical['precision']}", f"scale {logical['scale']}"]
        case "Timestamp" | "Time":
            details = [logical["timeUnit"], "UTC" if logical["isAdjustedToUTC"] else "without zone"]
        case "Geometry" | "Geography":
            details = [_given(logical, "crs")[0]]
    return f"{leaf.physical_type} ({', '.join([kind, *details])})"
