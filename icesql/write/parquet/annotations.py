"""Correct logical types in a footer where pyarrow's differ from the specification.

pyarrow writes none for groups that are variants, and none for UUIDs before release 21; before 22 it
marks times of day as adjusted to UTC, which DuckDB reads as TIME WITH TIME ZONE.
Source: Apache Parquet, "parquet.thrift" (FileMetaData, SchemaElement, LogicalType).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from icesql.iceberg import types as t
from icesql.read.formats.thrift import STRUCT, end_of_struct, zigzag
from icesql.write.parquet.thrift_edits import fields, structs

_SCHEMA: Final = 2
_CONVERTED_TYPE, _FIELD_ID, _LOGICAL_TYPE = 6, 9, 10
# LogicalType's field 16, VariantType; its field 1, the version of the specification, is 1.
_VARIANT: Final = b"\x0c\x20\x13\x01\x00\x00"
# Field 7, TimeType: not adjusted to UTC, in microseconds. Field 14, UUIDType.
_TIME: Final = b"\x7c\x12\x1c\x2c\x00\x00\x00\x00"
_UUID: Final = b"\xec\x00\x00"


def logical_types(stored: Iterable[t.NestedField]) -> dict[int, bytes]:
    """The logical types, by field id, that some releases of pyarrow write differently."""
    found = {}
    for each in stored:
        match each.type:
            case t.VariantType():
                found[each.field_id] = _VARIANT
            case t.TIME:
                found[each.field_id] = _TIME
            case t.UUID:
                found[each.field_id] = _UUID
    return found


def annotated(end: bytes, types: Mapping[int, bytes]) -> bytes:
    """The end of a file with these logical types for these field ids in its footer."""
    if not types:
        return end
    # The last four bytes are preceded by the length of the footer.
    (length,) = struct.unpack_from("<I", end, len(end) - 8)
    start = len(end) - 8 - length
    footer = _footer(end[start:-8], types)
    return end[:start] + footer + struct.pack("<I", len(footer)) + end[-4:]


def _footer(footer: bytes, types: Mapping[int, bytes]) -> bytes:
    made, done = bytearray(), 0
    for start in structs(footer, 0, _SCHEMA):
        end = end_of_struct(footer, start)
        made += footer[done:start] + _element(footer[start:end], types)
        done = end
    return bytes(made) + footer[done:]


def _element(element: bytes, types: Mapping[int, bytes]) -> bytes:
    """A SchemaElement with the wanted logical type of its field."""
    found = {each.field_id: each for each in fields(element, 0)}
    if _FIELD_ID not in found:
        return element
    own, _ = zigzag(element, found[_FIELD_ID].value)
    values = {number: element[each.value : each.end] for number, each in found.items()}
    wanted = types.get(own)
    if wanted is None or values.get(_LOGICAL_TYPE) == wanted:
        return element
    # The older converted type would contradict the new logical type.
    values.pop(_CONVERTED_TYPE, None)
    values[_LOGICAL_TYPE] = wanted
    made, last = bytearray(), 0
    for number, value in sorted(values.items()):
        made.append((number - last) << 4 | (found[number].kind if number in found else STRUCT))
        made += value
        last = number
    made.append(0)
    return bytes(made)
