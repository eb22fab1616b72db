"""Deletion vectors: the deleted row positions of one data file, a Roaring bitmap in Puffin.

Source: Iceberg spec, "deletion-vector-v1 blob type"; Roaring bitmap format specification.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator
from itertools import compress
from operator import lt
from sys import byteorder
from typing import Final

from icesql.errors import CorruptFileError
from icesql.iceberg.data_file import DataFile
from icesql.iceberg.puffin import read_puffin_footer

BLOB_TYPE: Final = "deletion-vector-v1"
_MAGIC: Final = b"\xd1\xd3\x39\x64"
_COOKIE: Final = 12346
_COOKIE_WITH_RUNS: Final = 12347
_CONTAINER: Final = 1 << 16
_MOST_IN_ARRAY: Final = 4096
_BITMAP_SIZE: Final = _CONTAINER // 8
# A few bytes of runs can spell billions of positions; no data file has so many rows.
_MOST_POSITIONS: Final = 1 << 30
_DIGITS: Final = bytes.maketrans(b"01", b"\x00\x01")


def load_deletion_vector(
    delete: DataFile, read: Callable[[int, int], bytes], *, path: str
) -> array[int]:
    """The positions that a deletion vector of a manifest deletes, ascending.

    ``read(offset, length)`` gives bytes of the Puffin file. Where the manifest does not say which
    bytes, the footer's blob for the referenced data file counts. Raises CorruptFileError.
    """
    offset, length = delete.content_offset, delete.content_size_in_bytes
    if offset is None or length is None:
        offset, length = _find_blob(delete, read, path)
    if offset < 0 or not 0 <= length <= max(delete.file_size_in_bytes, 0):
        raise CorruptFileError(path, f"a blob of {length} bytes does not fit the file")
    blob = read(offset, length)
    cardinality = delete.record_count if delete.record_count >= 0 else None
    return read_deletion_vector(blob, path=path, cardinality=cardinality, offset=offset)


def _find_blob(delete: DataFile, read: Callable[[int, int], bytes], path: str) -> tuple[int, int]:
    blobs = [
        blob
        for blob in read_puffin_footer(path, delete.file_size_in_bytes, read)
        if blob.type == BLOB_TYPE
        and delete.referenced_data_file
        in (None, blob.properties.get("referenced-data-file", delete.referenced_data_file))
    ]
    if len(blobs) != 1:
        raise CorruptFileError(
            path, f"{len(blobs)} deletion vectors for {delete.referenced_data_file}"
        )
    if blobs[0].codec is not None:
        raise CorruptFileError(path, "a compressed deletion vector", offset=blobs[0].offset)
    return blobs[0].offset, blobs[0].length


def read_deletion_vector(
    blob: bytes, *, path: str, cardinality: int | None = None, offset: int = 0
) -> array[int]:
    """The positions in a blob, ascending and distinct, as an ``array("q")``.

    ``cardinality`` is the number of them that the manifest promises; ``offset`` where the blob lies
    in the file, for errors. Raises CorruptFileError when length, magic, checksum, cardinality or
    the bitmap itself is wrong.
    """
    if len(blob) < 20:
        raise CorruptFileError(path, f"a deletion vector of {len(blob)} bytes", offset=offset)
    length = int.from_bytes(blob[:4], "big")
    if length != len(blob) - 8:
        problem = f"the deletion vector says {length} bytes and has {len(blob) - 8}"
        raise CorruptFileError(path, problem, offset=offset)
    if blob[4:8] != _MAGIC:
        raise CorruptFileError(path, "the deletion vector lacks its magic", offset=offset + 4)
    if zlib.crc32(blob[4:-4]) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFileError(path, "the checksum of the deletion vector is wrong", offset=offset)
    limit = _MOST_POSITIONS if cardinality is None else cardinality
    bitmap = _Bitmap(blob[8:-4], path, offset + 8, limit)
    positions = bitmap.positions()
    if cardinality is not None and len(positions) != cardinality:
        problem = f"{len(positions)} positions where the manifest says {cardinality}"
        raise CorruptFileError(path, problem, offset=offset)
    return positions


class _Bitmap:
    """Reads a 64-bit Roaring bitmap from start to end."""

    def __init__(self, data: bytes, path: str, offset: int, limit: int) -> None:
        self._data, self._path, self._offset, self._limit = data, path, offset, limit
        self._at = 0

    def positions(self) -> array[int]:
        found = array("q")
        previous = -1
        for _ in range(self._number(8)):
            key = self._number(4)
            if key >= 1 << 31:
                raise self._wrong(f"key {key} stands for negative positions")
            if key <= previous:
                raise self._wrong("keys are not ascending")
            previous = key
            self._read_bitmap(key << 32, found)
        if self._at != len(self._data):
            raise self._wrong("bytes are left over")
        return found

    def _read_bitmap(self, high: int, found: array[int]) -> None:
        cookie = self._number(4)
        if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = int.from_bytes(self._take((count + 7) // 8), "little")
        elif cookie == _COOKIE:
            count, flags = self._number(4), 0
        else:
            raise self._wrong(f"unknown Roaring cookie {cookie}")
        if count > _CONTAINER:
            raise self._wrong(f"{count} containers")
        header = self._shorts(2 * count)
        keys, sizes = header[::2], [size + 1 for size in header[1::2]]
        if not _ascending(keys):
            raise self._wrong("containers are not ascending")
        if len(found) + sum(sizes) > self._limit:
            raise self._wrong(f"more than {self._limit} positions")
        if cookie == _COOKIE or count >= 4:
            self._take(4 * count)  # where containers begin: they follow each other anyway
        for index, (key, size) in enumerate(zip(keys, sizes, strict=True)):
            base = high | key << 16
            before = len(found)
            if flags >> index & 1:
                for start, end in self._runs():
                    found.extend(range(base + start, base + end))
            elif size > _MOST_IN_ARRAY:
                bits = int.from_bytes(self._take(_BITMAP_SIZE), "little")
                digits = f"{bits:0{_CONTAINER}b}"[::-1].encode().translate(_DIGITS)
                found.extend(compress(range(base, base + _CONTAINER), digits))
            else:
                values = self._shorts(size)
                if not _ascending(values):
                    raise self._wrong("the values of a container are not ascending")
                found.extend(map(base.__add__, values))
            if len(found) - before != size:
                raise self._wrong(f"a container of {size} values has {len(found) - before}")

    def _runs(self) -> Iterator[tuple[int, int]]:
        pairs = self._shorts(2 * self._number(2))
        previous = -1
        for start, length in zip(pairs[::2], pairs[1::2], strict=True):
            end = start + length + 1
            if start <= previous or end > _CONTAINER:
                raise self._wrong("the runs of a container are not ascending")
            previous = end - 1
            yield start, end

    def _take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) != size:
            raise self._wrong("the bitmap ends early")
        self._at += size
        return part

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _shorts(self, count: int) -> array[int]:
        values = array("H")
        values.frombytes(self._take(2 * count))
        if byteorder == "big":
            values.byteswap()
        return values

    def _wrong(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            self._path, f"bad deletion vector: {problem}", offset=self._offset + self._at
        )


def _ascending(values: array[int]) -> bool:
    return all(map(lt, values, values[1:]))
