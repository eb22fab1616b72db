"""Check that the columns of a Parquet file have the types of a table, as every reader sees them.

Only equal types and Iceberg's type promotions are accepted: readers differ on unsigned integers,
on milliseconds and on bytes for a string column, and some would return other values.
Source: Iceberg spec, "Parquet" (data types) and "Schema Evolution"; Java
``MessageTypeToType``, which maps Parquet types to Iceberg types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from icesql.errors import CorruptFileError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import is_widening
from icesql.read.columns.convert import leaf_reader
from icesql.read.columns.variant import variant_reader
from icesql.read.formats.file_fields import FileField, is_list, walk

# Parts of a logical type that decide the type.
_DETAILS: Final[Mapping[str, tuple[str, ...]]] = {
    "Int": ("bitWidth", "isSigned"),
    "Time": ("timeUnit",),
    "Timestamp": ("timeUnit", "isAdjustedToUTC"),
}
# Iceberg's types, and the physical and logical types of Parquet that store them. Readers of Iceberg
# would treat milliseconds as microseconds.
_TYPES: Final = """
boolean: BOOLEAN None
int: INT32 None, INT32 Int 8 True, INT32 Int 16 True, INT32 Int 32 True
int: INT64 Int 8 True, INT64 Int 16 True, INT64 Int 32 True
long: INT64 None, INT64 Int 64 True
float: FLOAT None
double: DOUBLE None
date: INT32 Date
time: INT64 Time microseconds
timestamp: INT64 Timestamp microseconds False
timestamptz: INT64 Timestamp microseconds True
timestamp_ns: INT64 Timestamp nanoseconds False
timestamptz_ns: INT64 Timestamp nanoseconds True
string: BYTE_ARRAY String, BYTE_ARRAY Enum, BYTE_ARRAY JSON
binary: BYTE_ARRAY None, BYTE_ARRAY BSON
uuid: FIXED_LEN_BYTE_ARRAY UUID
"""
_STORED: Final[Mapping[str, t.IcebergType]] = {
    stored: t.parse_primitive(type)
    for type, listed in (line.split(": ") for line in _TYPES.strip().splitlines())
    for stored in listed.split(", ")
}


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
    if sum(not each.children for each in walk(fields)) != len(leaves):
        raise CorruptFileError(path, "its schema and its row groups have other columns")
    _Check(path, table, iter(leaves)).fields(columns, fields, "")


class _Check(Struct):
    """A walk over a file's fields; ``leaves`` are its Parquet columns, taken one by one."""

    path: str
    table: str
    leaves: Iterator[Any]

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
        for each in walk((field,)):
            if not each.children:
                next(self.leaves)

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
                leaf = next(self.leaves)
                stored = stored_type(leaf)
                taken = stored is not None and is_widening(stored, type)
                if not taken or leaf_reader(field.type, type) is None:
                    self._refuse(name, type, _spelled(leaf))

    def _refuse(self, name: str, type: t.IcebergType, found: str) -> None:
        raise TypeMismatchError(
            f'cannot add {self.path}: its column "{name}" is stored as {found}, and that of '
            f"{self.table} is {type}; files are taken as they lie where types are equal or widen: "
            "int to long, float to double, decimal to more digits of the same scale; "
            f"INSERT INTO {self.table} SELECT … FROM read_parquet('{self.path}') converts values"
        )


def stored_type(leaf: Any) -> t.IcebergType | None:
    """The Iceberg type of a ``pyarrow.parquet.ColumnSchema``; None if there is none."""
    physical, logical = leaf.physical_type, json.loads(leaf.logical_type.to_json())
    match physical, logical["Type"]:
        case "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY", "Decimal":
            return t.DecimalType(logical["precision"], logical["scale"])
        case "INT96", _:
            return t.TIMESTAMPTZ  # older engines write INT96 for instants
        case "FIXED_LEN_BYTE_ARRAY", "None":
            return t.FixedType(leaf.length)
        case "BYTE_ARRAY", "Geometry":
            return t.GeometryType(*_given(logical, "crs"))
        case "BYTE_ARRAY", "Geography":
            return t.GeographyType(*_given(logical, "crs", "algorithm"))
        case _, kind:
            details = (logical[each] for each in _DETAILS.get(kind, ()))
            return _STORED.get(" ".join(map(str, (physical, kind, *details))))


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
