"""The form of icesql's types inside DuckDB: names of struct fields, and types of columns.

DuckDB ignores case: a field whose name differs from an earlier one only in case gets a suffix.
Results do not have the suffix, so it is not visible outside of the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.types import NestedField, StructType, walk
from icesql.quoting import literal, quoted

if TYPE_CHECKING:
    import pyarrow as pa


# From Unicode's private use area: no name in a real table contains it.
_MARK: Final = "\ue0c5"
_SUFFIX: Final = re.compile(f"{_MARK}[0-9]+{_MARK}$")


def engine_names(names: Iterable[str]) -> list[str]:
    """The engine's names for the fields of one struct."""
    given, taken = list(names), set[str]()
    made = []
    for position, name in enumerate(given):
        clashes = name.lower() in taken or name.endswith(_MARK)
        taken.add(name.lower())
        made.append(f"{name}{_MARK}{position}{_MARK}" if clashes else name)
    return made


def true_name(name: str) -> str:
    """The field name that the engine's name represents."""
    return _SUFFIX.sub("", name) if name.endswith(_MARK) else name


def are_alike(names: Sequence[str]) -> bool:
    """True if some of the names differ from the engine's names."""
    return engine_names(names) != list(names)


def has_alike(fields: tuple[NestedField, ...]) -> bool:
    """True if a struct at any depth below ``fields`` has names that differ only in case."""
    return any(
        are_alike([child.name for child in each.type.fields])
        for each in walk(fields)
        if isinstance(each.type, StructType)
    )


def engine_arrow_type(given: pa.DataType) -> pa.DataType:
    """An Arrow type with the engine's field names in its structs."""
    import pyarrow as pa

    made = _rebuilt(given, lambda field: field.with_type(engine_arrow_type(field.type)))
    if not pa.types.is_struct(made):
        return made
    names = engine_names(field.name for field in made)
    return pa.struct([field.with_name(name) for field, name in zip(made, names, strict=True)])


def engine_schema(fields: Iterable[pa.Field], names: Iterable[str]) -> pa.Schema:
    """Fields under other names, with ``engine_arrow_type`` of their types."""
    import pyarrow as pa

    pairs = zip(fields, names, strict=True)
    return pa.schema([pa.field(name, engine_arrow_type(field.type)) for field, name in pairs])


def optional_type(given: pa.DataType) -> pa.DataType:
    """An Arrow type with all fields nullable: even a required one is NULL if its struct is."""
    import pyarrow as pa

    if pa.types.is_struct(given) and _is_variant(given):
        return given
    return _rebuilt(given, lambda f: f.with_type(optional_type(f.type)).with_nullable(True))


def _rebuilt(given: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested Arrow type with its fields changed; keys of a map are never NULL."""
    import pyarrow as pa

    if pa.types.is_struct(given):
        return pa.struct([change(each) for each in given])
    if pa.types.is_map(given):
        return pa.map_(change(given.key_field).with_nullable(False), change(given.item_field))
    if pa.types.is_list(given):
        return pa.list_(change(given.value_field))
    return given


def _is_variant(kind: pa.DataType) -> bool:
    """True for a struct that is a variant as files store it, whose fields are never NULL."""
    import pyarrow as pa

    return [each.name for each in kind] == ["metadata", "value"] and all(
        pa.types.is_binary(each.type) and not each.nullable for each in kind
    )


def renamed(array: Any, wanted: pa.DataType) -> Any:
    """``array`` with the field names of ``wanted`` in its structs, field by field in order."""
    import pyarrow as pa

    given = array.type
    if given == wanted:
        return array
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        if given.num_fields != wanted.num_fields or not given.num_fields:
            return array
        children = [renamed(array.field(i), wanted[i].type) for i in range(given.num_fields)]
        fields = [
            wanted[i].with_type(child.type).with_nullable(True) for i, child in enumerate(children)
        ]
        if _is_variant(wanted):
            children = [each.fill_null(b"") for each in children]
            fields = [each.with_nullable(False) for each in fields]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        keys, items = renamed(array.keys, wanted.key_type), renamed(array.items, wanted.item_type)
        made = pa.map_(
            wanted.key_field.with_type(keys.type), wanted.item_field.with_type(items.type)
        )
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=made)
    if pa.types.is_list(given) and pa.types.is_list(wanted):
        values = renamed(array.values, wanted.value_type)
        made = pa.list_(wanted.value_field.with_type(values.type))
        return pa.ListArray.from_arrays(_offsets(array), values, type=made)
    return array


def _offsets(array: Any) -> Any:
    """The offsets of a list or map array, null where the list is null."""
    import numpy as np
    import pyarrow as pa

    if not array.null_count:
        return array.offsets
    mask = np.append(array.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(array.offsets.to_numpy(), mask=mask, type=pa.int32())


# ------------------------------------------------------------------ types of columns


_TYPES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimeType: "TIME",
    t.TimestampType: "TIMESTAMP",
    t.TimestamptzType: "TIMESTAMPTZ",
    t.TimestampNanoType: "TIMESTAMP_NS",
    t.TimestamptzNanoType: "TIMESTAMPTZ_NS",
    t.UUIDType: "UUID",
    t.UnknownType: '"NULL"',
    **dict.fromkeys((t.StringType, t.VariantType), "VARCHAR"),
    **dict.fromkeys((t.FixedType, t.BinaryType, t.GeometryType, t.GeographyType), "BLOB"),
}


def duckdb_type(node: t.IcebergType) -> str:
    """The DuckDB type that holds every value of an Iceberg type.

    fixed, binary and geo (WKB) are BLOB; variant is its JSON text; unknown is DuckDB's NULL type.
    """
    match node:
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case t.StructType(fields):
            names = engine_names(each.name for each in fields)
            inner = ", ".join(
                f"{quoted(name)} {duckdb_type(each.type)}"
                for name, each in zip(names, fields, strict=True)
            )
            return f"STRUCT({inner})"
        case t.ListType():
            return f"{duckdb_type(node.element)}[]"
        case t.MapType():
            return f"MAP({duckdb_type(node.key)}, {duckdb_type(node.value)})"
        case _:
            return _TYPES[type(node)]


def column_types(columns: Iterable[t.NestedField]) -> str:
    """``{'name': 'TYPE', …}`` for file readers: names and types are quoted literals."""
    pairs = [f"{literal(each.name)}: {literal(duckdb_type(each.type))}" for each in columns]
    return "{" + ", ".join(pairs) + "}"
