"""Deletion vectors: the deleted row positions of one data file, a Roaring bitmap in Puffin.

Source: Iceberg spec, "deletion-vector-v1 blob type"; Roaring bitmap format specification.
"""

from __future__ import annotations

import zlib
from array import array
from typing import TYPE_CHECKING, Final

from icesql.errors import CorruptFileError

if TYPE_CHECKING:
    from pyroaring import BitMap64

VECTOR_MAGIC: Final = b"\xd1\xd3\x39\x64"
# A few bytes of runs can encode billions of positions, more rows than any data file has.
_MOST_POSITIONS: Final = 1 << 30


def read_deletion_vector(
    blob: bytes, *, path: str, cardinality: int | None = None, offset: int = 0
) -> array[int]:
    """The positions in a blob, ascending and distinct, as an ``array("q")``.

    ``cardinality`` is their number by the manifest; ``offset`` is that of the blob in the file, for
    errors. Raises CorruptFileError when length, magic, checksum, cardinality or the bitmap itself
    is wrong.
    """
    if len(blob) < 20:
        raise CorruptFileError(path, f"a deletion vector of {len(blob)} bytes", offset=offset)
    length = int.from_bytes(blob[:4], "big")
    if length != len(blob) - 8:
        problem = f"the deletion vector says {length} bytes and has {len(blob) - 8}"
        raise CorruptFileError(path, problem, offset=offset)
    if blob[4:8] != VECTOR_MAGIC:
        raise CorruptFileError(path, "the deletion vector lacks its magic", offset=offset + 4)
    if zlib.crc32(blob[4:-4]) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFileError(path, "the checksum of the deletion vector is wrong", offset=offset)
    bitmap = _bitmap(blob[8:-4], path, offset + 8)
    if cardinality is not None and len(bitmap) != cardinality:
        problem = f"{len(bitmap)} positions where the manifest says {cardinality}"
        raise CorruptFileError(path, problem, offset=offset)
    if len(bitmap) > _MOST_POSITIONS:
        problem = f"a deletion vector of more than {_MOST_POSITIONS} positions"
        raise CorruptFileError(path, problem, offset=offset)
    # As signed integers, like all positions and as numpy needs them.
    return array("q", bitmap.to_array().tobytes())


def _bitmap(data: bytes, path: str, offset: int) -> BitMap64:
    """A Roaring bitmap in the portable 64-bit format, checked by the library."""
    from pyroaring import BitMap64

    try:
        bitmap = BitMap64.deserialize(data)
    except (ValueError, IndexError) as error:
        problem = "the deletion vector is not a valid Roaring bitmap"
        raise CorruptFileError(path, problem, offset=offset) from error
    if len(bitmap) and bitmap.max() >= 1 << 63:
        problem = f"the deletion vector deletes position {bitmap.max()}, beyond 63 bits"
        raise CorruptFileError(path, problem, offset=offset)
    return bitmap
