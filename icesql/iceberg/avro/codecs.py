"""The codecs of Avro blocks, none of which unpacks further than the packed length allows.

Source: Avro 1.12 specification, "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from icesql.errors import UnsupportedTableError
from icesql.iceberg.avro.values import BadAvro

# Limits of the unpacked size. Metadata of many similar files packs to a twentieth, rarely less.
# Small blocks may pack better; larger manifests than the last limit are not supported.
_UNPACKED_TIMES: Final = 64
_UNPACKED_SMALL: Final = 64 << 20
_UNPACKED_END: Final = 1 << 30
_STEP: Final = 4 << 20
# Memory limit of the xz decoder, which allocates before it produces a byte.
_XZ_MEMORY: Final = 64 << 20


def most_unpacked(packed: int) -> int:
    """The largest size to which this many compressed bytes may expand."""
    return min(max(_UNPACKED_TIMES * packed, _UNPACKED_SMALL), _UNPACKED_END)


def unpack(codec: str, packed: bytes, limit: int, path: str) -> bytes:
    """One block, of at most ``limit`` bytes.

    Codecs null, deflate, bzip2 and xz need the standard library alone, snappy and zstandard use
    pyarrow; another codec raises UnsupportedTableError, data that is not packed by it BadAvro.
    """
    match codec:
        case "null":
            return packed
        case "deflate" | "bzip2" | "xz":
            return _standard(codec, packed, limit)
        case "snappy" | "zstandard":
            return _arrow(codec, packed, limit)
        case _:
            raise UnsupportedTableError(f"Avro codec {codec[:40]!r}", path=path)


def inflated(unpack: Any, packed: bytes, limit: int) -> bytes | None:
    """The output of a standard library decompressor; None for more than ``limit`` bytes.

    ``unpack.eof`` is false afterwards where the data ends early. Raises what it raises.
    """
    parts: list[bytes] = []
    total = 0
    # Output may still follow after the last input: stop at the end, or when a step adds nothing.
    while not unpack.eof:
        parts.append(unpack.decompress(packed, _STEP))
        if not parts[-1]:
            break
        total += len(parts[-1])
        if total > limit:
            return None
        packed = getattr(unpack, "unconsumed_tail", b"")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _standard(codec: str, packed: bytes, limit: int) -> bytes:
    import bz2
    import lzma

    unpack: Any
    match codec:
        case "deflate":
            unpack = zlib.decompressobj(-15)
        case "bzip2":
            unpack = bz2.BZ2Decompressor()
        case _:
            unpack = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    try:
        found = inflated(unpack, packed, limit)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise BadAvro(f"not {codec}: {error}") from error
    if found is None:
        raise _too_large(limit)
    if not unpack.eof:
        raise BadAvro(f"{codec} data ends early")
    return found


def _arrow(codec: str, packed: bytes, limit: int) -> bytes:
    import pyarrow as pa

    try:
        if codec == "zstandard":
            return _stream(packed, limit)
        size, checksum = _snappy_size(packed), packed[-4:]
        # A copy of at most 64 bytes takes three: nothing packs better.
        if size > min(limit, 32 * len(packed)):
            raise _too_large(min(limit, 32 * len(packed)))
        part: bytes = pa.decompress(packed[:-4], size, codec="snappy", asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise BadAvro(f"not {codec}: {error}") from error
    if zlib.crc32(part) != int.from_bytes(checksum, "big"):
        raise BadAvro("the checksum of a snappy block does not match")
    return part


def _stream(packed: bytes, limit: int) -> bytes:
    import pyarrow as pa

    parts: list[bytes] = []
    total = 0
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        while total <= limit and (part := stream.read(_STEP)):
            parts.append(part)
            total += len(part)
    if total > limit:
        raise _too_large(limit)
    return b"".join(parts)


def _too_large(limit: int) -> BadAvro:
    return BadAvro(f"unpacked it has more bytes than its packed length allows ({limit:,})")


def _snappy_size(packed: bytes) -> int:
    size = shift = 0
    for byte in packed[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return size
    raise BadAvro("not snappy")
