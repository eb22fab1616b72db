"""Puffin files: the footer, which lists the blobs and their places.

Source: Iceberg spec, "Puffin".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

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
