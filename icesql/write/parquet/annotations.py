"""Logical types in a footer that pyarrow writes none of: which groups are variants.

Source: Apache Parquet, "parquet.thrift" (FileMetaData, SchemaElement, LogicalType).
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Final

from icesql.errors import InternalError
from icesql.read.formats.thrift import STRUCT, end_of, list_header, varint

_SCHEMA: Final = 2
_FIELD_ID, _LOGICAL_TYPE = 9, 10
# LogicalType's field 16, VariantType; its field 1, the version of the specification, is 1.
_VARIANT: Final = b"\x0c\x20\x13\x01\x00\x00"


def with_variants(end: bytes, field_ids: Collection[int]) -> bytes:
    """The end of a file, in whose footer the groups with these field ids are variants."""
    if not field_ids:
        return end
    # In front of the last four bytes is the length of the footer.
    (length,) = struct.unpack_from("<I", end, len(end) - 8)
    start = len(end) - 8 - length
    footer = _footer(end[start:-8], field_ids)
    return end[:start] + footer + struct.pack("<I", len(footer)) + end[-4:]


def _footer(footer: bytes, field_ids: Collection[int]) -> bytes:
    position, field = 0, 0
    while True:
        header = footer[position]
        position += 1
        if header < 16:
            raise InternalError("the footer of a new file has no schema")
        field += header >> 4
        if field == _SCHEMA:
            break
        position = end_of(footer, position, header & 15)
    count, kind, position = list_header(footer, position)
    assert kind == STRUCT
    found, start = [footer[:position]], position
    for _ in range(count):
        end = end_of(footer, start, STRUCT)
        found.append(_element(footer[start:end], field_ids))
        start = end
    return b"".join([*found, footer[start:]])


def _element(element: bytes, field_ids: Collection[int]) -> bytes:
    """A SchemaElement, with its logical type behind everything that it has."""
    position, field, own = 0, 0, None
    while header := element[position]:
        position += 1
        if header < 16:
            raise InternalError("an unexpected field in the footer of a new file")
        field += header >> 4
        if field == _FIELD_ID:
            number, _ = varint(element, position)
            own = number >> 1
        position = end_of(element, position, header & 15)
    if own not in field_ids or field >= _LOGICAL_TYPE:
        return element
    return element[:-1] + bytes([(_LOGICAL_TYPE - field) << 4 | STRUCT]) + _VARIANT + b"\0"
