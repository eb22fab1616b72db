"""Puffin files and the deletion vectors in them.

Source: Iceberg spec, "Puffin" and "deletion-vector-v1 blob type".
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_object,
    load_json,
    objects,
    optional_text,
    required_int,
    required_text,
    text_map,
)

if TYPE_CHECKING:
    from pyroaring import BitMap64


MAGIC: Final = b"PFA1"
_NOT_COMPRESSED: Final = b"\0\0\0\0"
# Payload size, flags and magic behind the payload of the footer.
_TAIL: Final = 12
_LARGEST: Final = 64 << 20  # bytes of a footer, packed or not


class PuffinBlob(Frozen):
    """One blob: ``offset`` and ``length`` are bytes of the file, ``codec`` None is uncompressed."""

    type: str
    offset: int
    length: int
    codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def read_puffin_footer(
    path: str, size: int, read: Callable[[int, int], bytes]
) -> tuple[PuffinBlob, ...]:
    """The blobs of a file of ``size`` bytes; ``read(offset, length)`` returns bytes of it.

    Raises CorruptFileError, and what ``read`` raises.
    """
    text, payload_offset = read_puffin_payload(path, size, read)
    try:
        return _blobs(load_json(text), payload_offset)
    except Malformed as error:
        problem = f"bad Puffin footer: {error}"
        raise CorruptFileError(path, problem, offset=payload_offset) from error


def read_puffin_payload(
    path: str, size: int, read: Callable[[int, int], bytes]
) -> tuple[bytes, int]:
    """The JSON of the footer, unpacked, and its offset in the file.

    Raises as ``read_puffin_footer`` does.
    """
    if size < 2 * len(MAGIC) + _TAIL:
        raise CorruptFileError(path, f"{size} bytes are not a Puffin file")
    tail_offset = size - _TAIL
    tail = read(tail_offset, _TAIL)
    if len(tail) != _TAIL or tail[8:] != MAGIC:
        raise CorruptFileError(path, "the file does not end as Puffin does", offset=size - 4)
    length = int.from_bytes(tail[:4], "little", signed=True)
    payload_offset = tail_offset - length
    if not 0 <= length <= _LARGEST or payload_offset < 2 * len(MAGIC):
        raise CorruptFileError(path, f"a Puffin footer of {length} bytes", offset=tail_offset)
    flags = int.from_bytes(tail[4:8], "little")
    payload = read(payload_offset - len(MAGIC), len(MAGIC) + length)
    if len(payload) != len(MAGIC) + length or not payload.startswith(MAGIC):
        raise CorruptFileError(path, "the Puffin footer lacks its magic", offset=payload_offset - 4)
    if flags & ~1:
        raise UnsupportedTableError(f"Puffin footer flags {flags:#x}", path=path)
    text = payload[len(MAGIC) :]
    return (_unpack_lz4(text, path) if flags & 1 else text), payload_offset


def footer_parts(footer: Any, *, ascii_only: bool) -> tuple[bytes, ...]:
    """The end of a file with this JSON as its footer."""
    payload = json.dumps(footer, separators=(",", ":"), ensure_ascii=ascii_only).encode()
    return MAGIC, payload, len(payload).to_bytes(4, "little"), _NOT_COMPRESSED, MAGIC


def _unpack_lz4(packed: bytes, path: str) -> bytes:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), "lz4") as stream:
            plain: bytes = stream.read(_LARGEST + 1)
    except (OSError, pa.ArrowException) as error:
        raise CorruptFileError(path, f"the Puffin footer is not LZ4: {error}") from error
    if len(plain) > _LARGEST:
        raise CorruptFileError(path, f"a Puffin footer of more than {_LARGEST:,} bytes unpacked")
    return plain


def _blobs(json: Any, end: int) -> tuple[PuffinBlob, ...]:
    blobs = []
    for each in objects(as_object(json, "footer"), "blobs", "footer"):
        offset = required_int(each, "offset", "blob")
        length = required_int(each, "length", "blob")
        if offset < len(MAGIC) or length < 0 or offset + length > end:
            raise Malformed(f"a blob at {offset} of {length} bytes does not fit the file")
        blobs.append(
            PuffinBlob(
                required_text(each, "type", "blob"),
                offset,
                length,
                optional_text(each, "compression-codec", "blob"),
                text_map(each, "properties", "blob"),
            )
        )
    return tuple(blobs)


# ------------------------------------------------------------------ deletion vectors
# Source: Iceberg spec, "deletion-vector-v1 blob type"; Roaring bitmap format specification.


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


# ------------------------------------------------------------------ new files


VECTOR_TYPE: Final = "deletion-vector-v1"
# The reserved field id of the row position, the field that a vector refers to.
_POSITION_ID: Final = 2147483645


class NewBlob(Frozen):
    """One blob to write. Snapshot and sequence number -1: inherited from the snapshot."""

    type: str
    data: bytes
    fields: tuple[int, ...]
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    codec: str | None = None


class PlacedBlob(Frozen):
    """The offset and length of a blob in its file, in bytes."""

    offset: int
    length: int


def puffin_bytes(
    blobs: Sequence[NewBlob], created_by: str
) -> tuple[bytes, tuple[PlacedBlob, ...], int]:
    """A Puffin file, the places of its blobs in order, and the length of its footer."""
    parts, places, described = [MAGIC], [], []
    offset = len(MAGIC)
    for each in blobs:
        places.append(PlacedBlob(offset, len(each.data)))
        described.append(_described(each, offset))
        parts.append(each.data)
        offset += len(each.data)
    footer = {"blobs": described, "properties": {"created-by": created_by}}
    tail = footer_parts(footer, ascii_only=False)
    return b"".join((*parts, *tail)), tuple(places), sum(map(len, tail))


def _described(blob: NewBlob, offset: int) -> dict[str, Any]:
    node: dict[str, Any] = {
        "type": blob.type,
        "fields": [*blob.fields],
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": offset,
        "length": len(blob.data),
    }
    if blob.codec is not None:
        node["compression-codec"] = blob.codec
    return node | ({"properties": dict(blob.properties)} if blob.properties else {})


def deletion_vector_blob(data_file: str, positions: Iterable[int]) -> NewBlob:
    """The vector of the deleted row positions, from 0, of a data file; repeated ones count once.

    ``data_file`` is its path, character for character as its manifest has it. The cardinality is
    a property of the blob.
    """
    from pyroaring import BitMap64

    bitmap = BitMap64(positions)
    bitmap.run_optimize()
    vector = VECTOR_MAGIC + bitmap.serialize()
    length, checksum = len(vector).to_bytes(4, "big"), zlib.crc32(vector).to_bytes(4, "big")
    return NewBlob(
        VECTOR_TYPE,
        length + vector + checksum,
        (_POSITION_ID,),
        properties={"referenced-data-file": data_file, "cardinality": str(len(bitmap))},
    )


# ------------------------------------------------------------------ other names of data files


_REFERENCED: Final = "referenced-data-file"


def edited_footer(
    path: str, size: int, read: Callable[[int, int], bytes], change: Callable[[str], str]
) -> tuple[int, bytes]:
    """The offset of the footer in a file of ``size`` bytes, and its new bytes.

    ``change`` returns the new path of a data file. Raises CorruptFileError and what ``read`` does.
    """
    text, start = read_puffin_payload(path, size, read)
    try:
        footer = as_object(load_json(text), "footer")
        for blob in objects(footer, "blobs", "footer"):
            properties = blob.get("properties")
            if isinstance(properties, dict) and isinstance(properties.get(_REFERENCED), str):
                properties[_REFERENCED] = change(properties[_REFERENCED])
    except Malformed as error:
        raise CorruptFileError(path, f"bad Puffin footer: {error}", offset=start) from error
    return start - len(MAGIC), b"".join(footer_parts(footer, ascii_only=True))
