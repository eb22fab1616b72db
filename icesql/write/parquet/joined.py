"""Join row groups that were encoded as separate Parquet files into one file.

Their pages are copied; page indexes, Bloom filters and the footer follow all pages, with the new
offsets of the pages. Java's ``ParquetFileWriter.appendRowGroups`` does the same.
Thus several threads encode one file in the order of its rows: encoding took 2.5 of the 4.2 s of CPU
time of an INSERT of lineitem of TPC-H (scale 1, tests/benchmarks insert).
Source: Parquet format, FileMetaData, ColumnIndex and OffsetIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from icesql.iceberg.avro.values import encode_varint
from icesql.read.formats.thrift import integers
from icesql.write.parquet.thrift_edits import (
    Edit,
    Edits,
    edited,
    struct_list,
    structs,
)

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
