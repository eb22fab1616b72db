"""Whether DuckDB's own Parquet reader gives a file's columns exactly as the table means them.

DuckDB matches top-level columns by field id, but is silently wrong on files without ids, renamed
nested children, a differing UTC flag and more; each rule below closes one of those. Whatever is
not listed here is read by ``read/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from icesql.engine.duckdb.relations.footer import Element, Footer
from icesql.engine.struct_names import has_alike
from icesql.iceberg import types as t

_DEFAULTS_AS_TEXT = (
    t.BooleanType
    | t.IntegerType
    | t.LongType
    | t.FloatType
    | t.DoubleType
    | t.DecimalType
    | t.StringType
    | t.DateType
)
_NATIVE_LEAVES = (
    _DEFAULTS_AS_TEXT
    | t.TimeType
    | t.TimestampType
    | t.TimestamptzType
    | t.TimestampNanoType
    | t.TimestamptzNanoType
    | t.BinaryType
    | t.FixedType
    | t.UUIDType
)


def type_problem(column: t.NestedField) -> str | None:
    """Why DuckDB never reads a column of this type exactly; None if the footer decides."""
    if not _native_type(column.type):
        return f"column {column.name} is {column.type}"
    if t.children(column.type) and has_alike((column,)):
        return f"column {column.name} has fields that differ only in case"
    if column.initial_default is not t.MISSING and column.initial_default is not None:
        if not isinstance(column.type, _DEFAULTS_AS_TEXT):
            return f"column {column.name} has a default of type {column.type}"
        if isinstance(column.type, t.FloatType | t.DoubleType | t.StringType):
            # NaN and texts that a cast might change are left to the reference reader.
            return f"column {column.name} has a default of type {column.type}"
    return _nested_default(column)


def _nested_default(column: t.NestedField) -> str | None:
    for child in t.children(column.type):
        if child.initial_default is not t.MISSING and child.initial_default is not None:
            return f"child {child.name} of {column.name} has a default"
        if problem := _nested_default(child):
            return problem
    return None


def _native_type(node: t.IcebergType) -> bool:
    if isinstance(node, t.PrimitiveType):
        return isinstance(node, _NATIVE_LEAVES)
    names = [child.name.lower() for child in t.children(node)]
    return len(set(names)) == len(names) and all(_native_type(c.type) for c in t.children(node))


def footer_problem(
    footer: Footer, needed: Iterable[t.NestedField], identity_sources: frozenset[int]
) -> str | None:
    """Why DuckDB misreads some of the columns ``needed`` in this file; None if it does not.

    ``identity_sources`` are the columns whose value comes from the partition when a file has none.
    """
    by_id = footer.by_id
    if by_id is None:
        return "not every column of the file has a field id of its own"
    for column in needed:
        element = by_id.get(column.field_id)
        if element is None:
            if column.field_id in identity_sources:
                return f"column {column.name} comes from the partition, not from the file"
            if t.children(column.type):
                # DuckDB fails an assertion when one child of the absent column is asked for.
                return f"nested column {column.name} is not in the file"
            if column.required and column.initial_default is t.MISSING:
                return f"required column {column.name} is not in the file"
            continue
        if not _matches(column, element, nested=False):
            return (
                f"column {column.name} is stored as {_stored(element)}, the table has {column.type}"
            )
    return None


def _stored(element: Element) -> str:
    inner = ", ".join(f"{child.name} {_stored(child)}" for child in element.children)
    text = f"{element.physical or 'group'} {element.logical or element.converted or ''}".strip()
    return f"{text}<{inner}>" if inner else text


def _matches(column: t.NestedField, element: Element, *, nested: bool) -> bool:
    if element.repetition == "REPEATED":
        return False
    match column.type:
        case t.StructType(fields):
            return (
                element.physical is None
                and element.logical is None
                and element.converted is None
                and len(fields) == len(element.children)
                and all(map(_same_child, fields, element.children))
            )
        case t.ListType():
            if not _is_group(element, "LIST", "ListType()") or len(element.children) != 1:
                return False
            (repeated,) = element.children
            return (
                repeated.repetition == "REPEATED"
                and repeated.physical is None
                and len(repeated.children) == 1
                and repeated.name not in ("array", f"{element.name}_tuple")
                and repeated.children[0].field_id == column.type.element_id
                and _matches(column.type.element_field, repeated.children[0], nested=True)
            )
        case t.MapType():
            if not _is_group(element, "MAP", "MapType()") or len(element.children) != 1:
                return False
            (repeated,) = element.children
            if repeated.repetition != "REPEATED" or len(repeated.children) != 2:
                return False
            key, value = repeated.children
            return (
                key.field_id == column.type.key_id
                and value.field_id == column.type.value_id
                and _matches(column.type.key_field, key, nested=True)
                and _matches(column.type.value_field, value, nested=True)
            )
        case leaf:
            return _matches_leaf(leaf, element)


def _same_child(column: t.NestedField, element: Element) -> bool:
    return (
        column.field_id == element.field_id
        and column.name == element.name
        and _matches(column, element, nested=True)
    )


def _is_group(element: Element, converted: str, logical: str) -> bool:
    return element.physical is None and (
        element.converted == converted or element.logical == logical
    )


def _matches_leaf(node: t.IcebergType, element: Element) -> bool:
    physical, converted = element.physical, element.converted
    logical = element.logical
    signed_int = _signed_int(element)
    match node:
        case t.BooleanType():
            return physical == "BOOLEAN" and converted is None and logical is None
        case t.IntegerType():
            return physical == "INT32" and signed_int
        case t.LongType():
            return physical in ("INT32", "INT64") and signed_int
        case t.FloatType():
            return physical == "FLOAT" and logical is None
        case t.DoubleType():
            return physical in ("FLOAT", "DOUBLE") and logical is None
        case t.DecimalType(precision, scale):
            return (
                physical in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
                and converted == "DECIMAL"
                and element.scale == scale
                and element.precision is not None
                and element.precision <= precision
            )
        case t.DateType():
            return physical == "INT32" and (converted == "DATE" or logical == "DateType()")
        case t.TimeType():
            return _unit(element, "TimeType") in ("MILLIS", "MICROS") and not _is_utc(element)
        case t.TimestampType():
            if physical == "INT32" and (converted == "DATE" or logical == "DateType()"):
                return True
            return (
                physical == "INT64"
                and _unit(element, "TimestampType") in ("MILLIS", "MICROS")
                and not _is_utc(element)
            )
        case t.TimestamptzType():
            return (
                physical == "INT64"
                and _unit(element, "TimestampType") in ("MILLIS", "MICROS")
                and _is_utc(element)
            )
        case t.TimestampNanoType():
            return _unit(element, "TimestampType") == "NANOS" and not _is_utc(element)
        case t.TimestamptzNanoType():
            # DuckDB reads these as TIMESTAMP_NS and fails to cast.
            return False
        case t.StringType():
            return physical == "BYTE_ARRAY" and (converted == "UTF8" or logical == "StringType()")
        case t.BinaryType():
            return physical == "BYTE_ARRAY" and converted is None and logical is None
        case t.FixedType(length):
            return (
                physical == "FIXED_LEN_BYTE_ARRAY"
                and element.length == length
                and converted is None
                and logical is None
            )
        case t.UUIDType():
            return (
                physical == "FIXED_LEN_BYTE_ARRAY"
                and element.length == 16
                and converted is None
                and logical in (None, "UUIDType()")
            )
        case _:
            return False


def _signed_int(element: Element) -> bool:
    if element.converted not in (None, "INT_8", "INT_16", "INT_32", "INT_64"):
        return False
    return element.logical is None or "isSigned=1" in element.logical


_UNIT: Final = r"(MILLIS|MICROS|NANOS)=(?!<null>)"


def _unit(element: Element, logical: str) -> str | None:
    """The time unit, from the logical type only: the old annotation does not say the zone."""
    if element.logical is None or not element.logical.startswith(logical):
        return None
    found = re.search(_UNIT, element.logical)
    return found[1] if found else None


def _is_utc(element: Element) -> bool:
    return "isAdjustedToUTC=1" in (element.logical or "")
