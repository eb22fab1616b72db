"""The number of rows that a local Parquet file's footer states, read without any library.

Asking DuckDB takes about as long as reading its schema; this takes a tenth of a millisecond.
Source: Parquet format, FileMetaData in Thrift's compact protocol: version, schema, num_rows.
"""

from __future__ import annotations

import os
from typing import Final

_FIRST_BYTES: Final = 1 << 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST: Final = 20


def row_count(location: str) -> int | None:
    """Rows by the footer of the file at ``location``; None when it is not a plain Parquet footer.

    Raises OSError when the file cannot be read.
    """
    with open(location, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < 12:
            return None
        file.seek(size - 8)
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length > size - 12:
            return None
        file.seek(size - 8 - length)
        footer = file.read(min(length, _FIRST_BYTES))
        try:
            return _rows(footer)
        except IndexError:
            footer += file.read(length - len(footer))
    try:
        return _rows(footer)
    except IndexError:
        return None


def _rows(footer: bytes) -> int | None:
    """Field 3 of the struct; raises IndexError when the bytes end before it."""
    reader = _Reader(footer)
    field_id = 0
    while kind := reader.byte():
        field_id = field_id + (kind >> 4) if kind >> 4 else reader.zigzag()
        kind &= 15
        if field_id == 3:
            return reader.zigzag() if kind == 6 else None
        if field_id > 3 or not reader.skip(kind, 0):
            return None
    return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def byte(self) -> int:
        value = self._data[self._position]
        self._position += 1
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            part = self.byte()
            value |= (part & 127) << shift
            if part < 128:
                return value
            shift += 7

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int) -> bool:
        """Pass a value; False for what is no Thrift value, or nested too deeply."""
        if depth > _DEEPEST:
            return False
        if kind in (_TRUE, _FALSE):
            return True
        if kind == _BYTE:
            self._position += 1
        elif kind < _DOUBLE:
            self.varint()
        elif kind == _DOUBLE:
            self._position += 8
        elif kind == _BINARY:
            length = self.varint()
            self._position += length
        elif kind in (_LIST, _SET):
            return self._skip_list(depth)
        elif kind == _STRUCT:
            return self._skip_struct(depth)
        else:
            return False
        return True

    def _skip_list(self, depth: int) -> bool:
        header = self.byte()
        count, kind = header >> 4, header & 15
        if count == 15:
            count = self.varint()
        if kind in (_TRUE, _FALSE):
            self._position += count
            return True
        return all(self.skip(kind, depth + 1) for _ in range(count))

    def _skip_struct(self, depth: int) -> bool:
        while kind := self.byte():
            if not kind >> 4:
                self.zigzag()
            if not self.skip(kind & 15, depth + 1):
                return False
        return True
