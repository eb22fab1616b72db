"""Edits Parquet footers: joins row groups into one file, and corrects logical types.

Source: Parquet format, "parquet.thrift" (FileMetaData, SchemaElement, LogicalType, ColumnIndex,
OffsetIndex); Thrift, "Thrift compact protocol encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from icesql.iceberg import types as t
from icesql.iceberg.avro.values import encode_varint, varint_bytes
from icesql.read.formats.thrift import (
    STRUCT,
    BadThrift,
    end_of,
    end_of_struct,
    integers,
    list_header,
    zigzag,
)

# ------------------------------------------------------------------ edited structs of Thrift


# By field id: bytes to replace the value, a function for an integer, edits for a struct, or the
# edits of each element for a list of structs.
Edits: TypeAlias = Mapping[int, "Edit"]
Edit: TypeAlias = "bytes | Callable[[int], int] | Edits | Sequence[Edits]"


class Field(NamedTuple):
    """A field of a struct: the offsets of its header, its value and its end."""

    field_id: int
    kind: int
    start: int
    value: int
    end: int


def fields(data: bytes, position: int) -> Iterator[Field]:
    """The fields of the struct at ``position``."""
    field_id = 0
    while header := data[position]:
        start, kind = position, header & 15
        position += 1
        if header < 16:
            field_id, position = zigzag(data, position)
        else:
            field_id += header >> 4
        end = end_of(data, position, kind)
        yield Field(field_id, kind, start, position, end)
        position = end


def structs(data: bytes, position: int, field_id: int) -> Iterator[int]:
    """The offsets of the structs in a list, which is a field of the struct at ``position``."""
    for each in fields(data, position):
        if each.field_id == field_id:
            count, kind, place = list_header(data, each.value)
            assert kind == STRUCT
            for _ in range(count):
                yield place
                place = end_of_struct(data, place)


def edited(data: bytes, position: int, edits: Edits) -> bytes:
    """The struct at ``position``, edited; edits of fields that it lacks have no effect.

    >>> edited(bytes([0x16, 4, 0x16, 6, 0]), 0, {2: lambda value: value + 100}).hex()
    '160416ce0100'
    """
    made = bytearray()
    for each in fields(data, position):
        edit = edits.get(each.field_id)
        if edit is None:
            made += data[each.start : each.end]
            continue
        made += data[each.start : each.value]
        if isinstance(edit, bytes):
            made += edit
        elif callable(edit):
            made += encode_varint(edit(zigzag(data, each.value)[0]))
        elif isinstance(edit, Mapping):
            made += edited(data, each.value, edit)
        else:
            made += _edited_list(data, each.value, edit)
    made.append(0)
    return bytes(made)


def _edited_list(data: bytes, position: int, edits: Sequence[Edits]) -> bytes:
    count, kind, inner = list_header(data, position)
    if count != len(edits) or kind != STRUCT:
        raise BadThrift(f"a list of {count} values of kind {kind}, not of {len(edits)} structs")
    made = bytearray(data[position:inner])
    for each in edits:
        made += edited(data, inner, each)
        inner = end_of(data, inner, STRUCT)
    return bytes(made)


def struct_list(structs: Sequence[bytes]) -> bytes:
    """The encoding of a list of structs."""
    count = len(structs)
    length = b"" if count < 15 else varint_bytes(count)
    return bytes([min(count, 15) << 4 | STRUCT]) + length + b"".join(structs)


# ------------------------------------------------------------------ row groups joined into one file


MAGIC: Final = b"PAR1"
_LENGTH: Final = 4
# Fields of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, OffsetIndex and PageLocation.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK, _OFFSETS, _OFFSETS_LENGTH, _INDEX, _INDEX_LENGTH = 3, 4, 5, 6, 7
_PAGES, _INDEX_PAGES, _DICTIONARY, _BLOOM = 9, 10, 11, 14
# Ids of metadata fields as ``integers`` returns them.
_BLOOM_PLACE, _BLOOM_LENGTH = 314, 315
_LOCATIONS, _LOCATION = 1, 1

# An offset in the new file, and a length.
_Place: TypeAlias = tuple[int, int]


class Part:
    """An encoded file of at most one row group: its pages, and everything that follows them.

    ``pages`` is the offset of their end; the file begins with the magic bytes, which are not pages.
    """

    def __init__(self, data: Any) -> None:
        length = int.from_bytes(bytes(data[-_LENGTH - len(MAGIC) : -len(MAGIC)]), "little")
        start = len(data) - length - _LENGTH - len(MAGIC)
        self.footer = bytes(data[start : start + length])
        # The integer fields of each column chunk; those of its metadata have ids from 300.
        chunks = [
            integers(self.footer, chunk, _CHUNK)[0]
            for group in structs(self.footer, 0, _GROUPS)
            for chunk in structs(self.footer, group, _COLUMNS)
        ]
        places = [
            each[key] for each in chunks for key in (_OFFSETS, _INDEX, _BLOOM_PLACE) if key in each
        ]
        self.pages = min(places, default=start)
        self._chunks = chunks
        self._tail = bytes(data[self.pages : start])
        self.moved = 0

    def rest(self) -> bytes:
        """The bytes that follow the pages in a file with only this part."""
        length = len(self.footer).to_bytes(_LENGTH, "little")
        return self._tail + self.footer + length + MAGIC

    def pieces(self, place: int, length: int) -> list[bytes]:
        """For each chunk its Bloom filter or index, empty if it has none."""
        found = []
        for each in self._chunks:
            start = each.get(place, self.pages) - self.pages
            found.append(self._tail[start : start + each.get(length, 0)])
        return found

    def offset_indexes(self) -> list[bytes]:
        """The offset indexes of all chunks, with the offsets of their pages in the new file."""
        made = []
        for data in self.pieces(_OFFSETS, _OFFSETS_LENGTH):
            if data:
                locations: list[Edits] = [
                    {_LOCATION: self.place} for _ in structs(data, 0, _LOCATIONS)
                ]
                data = edited(data, 0, {_LOCATIONS: locations})
            made.append(data)
        return made

    def place(self, offset: int) -> int:
        """The offset of a page in the new file; 0 means no page and stays 0."""
        return offset + self.moved if offset else 0


def rest_of_file(parts: Sequence[Part], position: int, rows: int) -> bytes:
    """The bytes after the pages of all parts, which end at ``position``; ``rows`` in total."""
    if len(parts) == 1:
        return parts[0].rest()
    made = bytearray()

    def placed(pieces: Sequence[bytes]) -> list[_Place]:
        found = []
        for data in pieces:
            found.append((position + len(made), len(data)))
            made.extend(data)
        return found

    blooms = [placed(each.pieces(_BLOOM_PLACE, _BLOOM_LENGTH)) for each in parts]
    indexes = [placed(each.pieces(_INDEX, _INDEX_LENGTH)) for each in parts]
    offsets = [placed(each.offset_indexes()) for each in parts]
    groups: list[bytes] = []
    for part, *places in zip(parts, blooms, indexes, offsets, strict=True):
        groups += _group(part, len(groups), *places)
    changes: dict[int, Edit] = {_ROWS: encode_varint(rows), _GROUPS: struct_list(groups)}
    footer = edited(parts[0].footer, 0, changes)
    made += footer + len(footer).to_bytes(_LENGTH, "little") + MAGIC
    return bytes(made)


def _group(
    part: Part,
    number: int,
    blooms: Sequence[_Place],
    indexes: Sequence[_Place],
    offsets: Sequence[_Place],
) -> list[bytes]:
    """The row group of a part with offsets in the new file, if the part has one.

    ``number`` is how many row groups precede it: pyarrow also wrote that until release 19.
    """
    columns: list[Edits] = []
    for bloom, index, offset in zip(blooms, indexes, offsets, strict=True):
        metadata: dict[int, Edit] = dict.fromkeys((_PAGES, _INDEX_PAGES, _DICTIONARY), part.place)
        metadata[_BLOOM] = _as(bloom[0])
        chunk: dict[int, Edit] = {
            _CHUNK: metadata,
            _OFFSETS: _as(offset[0]),
            _OFFSETS_LENGTH: _as(offset[1]),
            _INDEX: _as(index[0]),
            _INDEX_LENGTH: _as(index[1]),
        }
        columns.append(chunk)
    changes: Edits = {
        _COLUMNS: columns, _GROUP_OFFSET: part.place, _ORDINAL: encode_varint(number),
    }  # fmt: skip
    return [edited(part.footer, group, changes) for group in structs(part.footer, 0, _GROUPS)]


def _as(value: int) -> Callable[[int], int]:
    return lambda _: value


# ------------------------------------------------------------------ logical types
# pyarrow writes none for groups that are variants, and none for UUIDs before release 21; before 22
# it marks times of day as adjusted to UTC, which DuckDB reads as TIME WITH TIME ZONE. Source:
# Apache Parquet, "parquet.thrift" (FileMetaData, SchemaElement, LogicalType).


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
