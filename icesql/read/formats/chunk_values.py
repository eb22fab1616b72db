"""Whether a column chunk of Parquet can hold a value at all, by its dictionary and bloom filter.

Statistics say between what the values lie; these two say which there are. A value is looked for in
the bytes in which the file would hold it. Whatever is not understood, damaged or beyond the file
says nothing. Source: Iceberg Java, ParquetDictionaryRowGroupFilter and ParquetBloomRowGroupFilter;
Parquet format, "Bloom Filter" and PageHeader.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import Leaf, Operation
from icesql.read.formats.thrift import (
    I16,
    I64,
    LIST,
    STRUCT,
    BadThrift,
    end_of,
    integers,
    list_header,
    zigzag,
)
from icesql.read.formats.xxhash64 import xxhash64

# Bytes of a file at a position, fewer at its end.
ReadAt = Callable[[int, int], bytes]

_SMALL_GROUP: Final = 1 << 20
# Larger dictionaries and footers take longer to look at than they save.
_MOST_DICTIONARY: Final = 4 << 20
_MOST_FOOTER: Final = 1 << 18
_MOST_BLOOM: Final = 128 << 20
_BLOOM_HEADER: Final = 64
_DICTIONARY_PAGE: Final = 2
_DATA_PAGES: Final = (0, 3)
_DICTIONARY_ENCODINGS: Final = (2, 8)
_PLAIN_ENCODINGS: Final = (0, 2)
_CODECS: Final = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "ZSTD": "zstd", "GZIP": "gzip"}
_SALTS: Final = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip
_ASKED: Final = (
    Operation.EQ,
    Operation.IN,
    Operation.STARTS_WITH,
    Operation.NOT_EQ,
    Operation.NOT_IN,
)


class ChunkValues:
    """The dictionaries and bloom filters of one open file; ``metadata`` is pyarrow's."""

    def __init__(self, metadata: Any, size: int, read_at: ReadAt) -> None:
        self._metadata, self._size, self._read_at = metadata, size, read_at
        self._footer = b""
        self._groups: list[int] | None = None
        self._dictionaries: dict[tuple[int, int], bytes | None] = {}

    def may_match(
        self, group: int, column: int, leaf: Leaf, stored: pa.DataType, type: t.IcebergType
    ) -> bool:
        """False only if no value of a column chunk satisfies ``leaf``.

        ``stored`` is the Arrow type of the column in the file, ``type`` its type in the table.
        """
        if leaf.operation not in _ASKED:
            return True
        chunk = self._metadata.row_group(group).column(column)
        several = leaf.operation in (Operation.IN, Operation.NOT_IN)
        literals = leaf.literal if several else (leaf.literal,)
        values = [stored_value(each, type, stored, chunk.physical_type) for each in literals]
        if None in values:
            return True
        encoded: list[bytes] = [each for each in values if each is not None]
        try:
            if leaf.operation in (Operation.EQ, Operation.IN):
                return self._by_bloom(chunk, encoded) and self._by_dictionary(
                    group, column, leaf.operation, encoded
                )
            return self._by_dictionary(group, column, leaf.operation, encoded)
        except (IndexError, BadThrift, OSError, pa.ArrowException):
            return True

    # ------------------------------------------------------------------ dictionary

    def _by_dictionary(
        self, group: int, column: int, operation: Operation, values: list[bytes]
    ) -> bool:
        page = self._dictionary(group, column)
        if page is None:
            return True
        chunk = self._metadata.row_group(group).column(column)
        if operation is Operation.STARTS_WITH:
            return values[0] in page
        if chunk.physical_type == "BYTE_ARRAY":
            values = [len(each).to_bytes(4, "little") + each for each in values]
        if operation in (Operation.NOT_EQ, Operation.NOT_IN):
            return page not in values  # the only value there is
        # Bytes that are there by chance cost a look at the rows; what is not there is no value.
        return any(each in page for each in values)

    def _dictionary(self, group: int, column: int) -> bytes | None:
        """The values of a chunk that has no others than its dictionary's; None when unsure."""
        key = group, column
        # Reading the rows of a small one takes no longer.
        if self._metadata.row_group(group).total_byte_size < _SMALL_GROUP:
            return None
        if key not in self._dictionaries:
            self._dictionaries[key] = None
            self._dictionaries[key] = self._read_dictionary(group, column)
        return self._dictionaries[key]

    def _read_dictionary(self, group: int, column: int) -> bytes | None:
        chunk = self._metadata.row_group(group).column(column)
        first, end = chunk.dictionary_page_offset, chunk.data_page_offset
        if not chunk.has_dictionary_page or not first or not 0 < end - first <= _MOST_DICTIONARY:
            return None
        codec = _CODECS.get(chunk.compression, "")
        if codec == "" or not self._is_dictionary_only(group, column):
            return None
        data = self._read_at(first, end - first)
        header, position = integers(data, 0, 7)
        packed, unpacked = header.get(3, -1), header.get(2, -1)
        page = data[position : position + packed]
        if header.get(1) != _DICTIONARY_PAGE or header.get(702) not in _PLAIN_ENCODINGS:
            return None
        if not 0 <= unpacked <= _MOST_DICTIONARY or packed < 0 or len(page) != packed:
            return None
        if 4 in header and zlib.crc32(page) != header[4] & 0xFFFFFFFF:
            return None
        if codec is not None:
            page = pa.decompress(page, unpacked, codec=codec, asbytes=True)
        return page if len(page) == unpacked and header.get(701, 0) > 0 else None

    def _is_dictionary_only(self, group: int, column: int) -> bool:
        """Whether the footer says that every data page holds numbers of the dictionary."""
        encodings = set(self._metadata.row_group(group).column(column).encodings)
        if "PLAIN_DICTIONARY" in encodings:
            # Writers of old pages: what is neither the dictionary nor levels is other values.
            if encodings <= {"PLAIN_DICTIONARY", "RLE", "BIT_PACKED"}:
                return True
        elif "RLE_DICTIONARY" not in encodings:
            return False
        if self._groups is None:
            self._footer = self._read_footer()
            self._groups = row_groups(self._footer) if self._footer else []
        if group >= len(self._groups):
            return False
        pages = page_encodings(self._footer, self._groups[group], column)
        data = [encoding for kind, encoding, count in pages if kind in _DATA_PAGES and count]
        return bool(data) and set(data) <= set(_DICTIONARY_ENCODINGS)

    def _read_footer(self) -> bytes:
        length = self._metadata.serialized_size
        if not 0 < length <= _MOST_FOOTER or length + 8 > self._size:
            return b""
        tail = self._read_at(self._size - 8 - length, length + 8)
        is_whole = len(tail) == length + 8 and tail.endswith(b"PAR1")
        return tail[:length] if is_whole and tail[-8:-4] == length.to_bytes(4, "little") else b""

    # ------------------------------------------------------------------ bloom filter

    def _by_bloom(self, chunk: Any, values: Iterable[bytes]) -> bool:
        # Releases of pyarrow that do not tell where it is read without.
        begin = getattr(chunk, "bloom_filter_offset", None)
        if begin is None or not 0 < begin < self._size:
            return True
        header, length = _bloom_header(self._read_at(begin, _BLOOM_HEADER))
        size = header.get(1, 0)
        # A hole would be zeros: there is a header, and it is the one kind that there is.
        if {each: header.get(each) for each in (2, 3, 4)} != {2: 1, 3: 1, 4: 1}:
            return True
        if size <= 0 or size % 32 or size > _MOST_BLOOM or begin + length + size > self._size:
            return True
        return any(self._may_hold(each, begin + length, size // 32) for each in values)

    def _may_hold(self, value: bytes, begin: int, blocks: int) -> bool:
        hashed = xxhash64(value)
        block = self._read_at(begin + 32 * ((hashed >> 32) * blocks >> 32), 32)
        if len(block) < 32:
            return True
        low = hashed & 0xFFFFFFFF
        for index, salt in enumerate(_SALTS):
            word = int.from_bytes(block[4 * index : 4 * index + 4], "little")
            if not word >> ((low * salt & 0xFFFFFFFF) >> 27) & 1:
                return False
        return True


def stored_value(
    literal: Any, type: t.IcebergType, stored: pa.DataType, physical: str
) -> bytes | None:
    """The bytes in which a file holds a value of the table; None where several might be it.

    Numbers with a fraction are left out: zero has two forms, decimals as many as writers.
    """
    if isinstance(stored, pa.BaseExtensionType):
        stored = stored.storage_type
    if isinstance(stored, pa.DictionaryType):
        stored = stored.value_type
    match type:
        case t.IntegerType() | t.LongType():
            same = pa.types.is_signed_integer(stored)
        case t.DateType():
            same = pa.types.is_date32(stored)
        case t.TimeType() | t.TimestampType() | t.TimestamptzType():
            is_time = pa.types.is_time(stored) or pa.types.is_timestamp(stored)
            same = is_time and stored.unit == "us"
        case t.TimestampNanoType() | t.TimestamptzNanoType():
            same = pa.types.is_timestamp(stored) and stored.unit == "ns"
        case t.StringType() | t.BinaryType() if physical == "BYTE_ARRAY":
            return literal.encode() if isinstance(literal, str) else bytes(literal)
        case t.FixedType() | t.UUIDType() if pa.types.is_fixed_size_binary(stored):
            whole = physical == "FIXED_LEN_BYTE_ARRAY" and len(literal) == stored.byte_width
            return bytes(literal) if whole else None
        case _:
            return None
    width = {"INT32": 4, "INT64": 8}.get(physical)
    if not same or width is None or not -(1 << 8 * width - 1) <= literal < 1 << 8 * width - 1:
        return None
    return int(literal).to_bytes(width, "little", signed=True)


def row_groups(footer: bytes) -> list[int]:
    """Where each row group begins in a footer."""
    count, position = _elements(footer, 0, 4) or (0, 0)
    found = []
    for _ in range(count):
        found.append(position)
        position = end_of(footer, position, STRUCT)
    return found


def page_encodings(footer: bytes, group: int, column: int) -> list[tuple[int, int, int]]:
    """(kind of page, encoding, number of pages) of a column chunk; nothing when it is not said.

    ``group`` is where its row group begins.
    """
    columns = _elements(footer, group, 1)
    chunk = _nth(footer, columns, column)
    pages = _elements(footer, _field(footer, chunk, 3, STRUCT), 13)
    found = []
    if pages is not None:
        count, position = pages
        for _ in range(count):
            page, position = integers(footer, position)
            found.append((page.get(1, -1), page.get(2, -1), page.get(3, 0)))
    return found


def _elements(data: bytes, position: int | None, field: int) -> tuple[int, int] | None:
    """How many structs the list in a field of a struct has, and where the first is."""
    position = _field(data, position, field, LIST)
    if position is None:
        return None
    count, kind, position = list_header(data, position)
    return (count, position) if kind == STRUCT else None


def _nth(data: bytes, elements: tuple[int, int] | None, index: int) -> int | None:
    if elements is None or index >= elements[0]:
        return None
    position = elements[1]
    for _ in range(index):
        position = end_of(data, position, STRUCT)
    return position


def _field(data: bytes, position: int | None, wanted: int, wanted_kind: int) -> int | None:
    """Where the value of a field of a struct begins."""
    if position is None:
        return None
    field_id = 0
    while header := data[position]:
        position += 1
        if header < 16:
            return None  # no field of these structs has a number so large
        field_id += header >> 4
        if field_id == wanted:
            return position if header & 15 == wanted_kind else None
        position = end_of(data, position, header & 15)
    return None


def _bloom_header(data: bytes) -> tuple[dict[int, int], int]:
    """A BloomFilterHeader: its integers, of each union the field that is set, and its length."""
    found: dict[int, int] = {}
    position = field_id = 0
    while header := data[position]:
        if header < 16:
            raise BadThrift("a header of a bloom filter with other fields")
        field_id += header >> 4
        if header & 15 == STRUCT:
            found[field_id] = data[position + 1] >> 4
            position = end_of(data, position + 1, STRUCT)
        else:
            begin = position + 1
            position = end_of(data, begin, header & 15)
            if I16 <= header & 15 <= I64:
                found[field_id] = zigzag(data, begin)[0]
    return found, position + 1
