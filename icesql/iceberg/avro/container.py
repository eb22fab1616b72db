"""Avro object containers: the header and the unpacked blocks of a file.

Source: Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from icesql.errors import CorruptFileError, UnsupportedTableError

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
# Bytes after unpacking. Metadata of many like files packs to a twentieth, rarely less; what is
# small may pack better, and beyond the end no manifest is planned with.
_UNPACKED_TIMES: Final = 64
_UNPACKED_SMALL: Final = 64 << 20
_UNPACKED_END: Final = 1 << 30
_STEP: Final = 4 << 20
# What an xz block may ask for before it has given a byte.
_XZ_MEMORY: Final = 64 << 20


class BadAvro(ValueError):
    """Bytes that are not what the Avro encoding allows."""


class AvroFile(Struct, frozen=True):
    """The blocks of one file, unpacked and joined.

    ``blocks`` holds per block the number of its records, the end of them in ``data``, and the
    byte of the file where the block begins.
    """

    path: str
    metadata: Mapping[str, bytes]
    data: bytes
    blocks: tuple[tuple[int, int, int], ...]

    @property
    def schema(self) -> bytes:
        """The writer schema, as JSON text."""
        return self.metadata["avro.schema"]


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag integer of at most 64 bits and the position after it.

    Raises IndexError at the end of the data, BadAvro when it is longer than 64 bits.
    """
    byte = data[position]
    position += 1
    value = byte & 127
    shift = 7
    while byte > 127:
        if shift > 63:
            raise BadAvro("integer longer than 64 bits")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), position


def read_avro_file(data: bytes, path: str) -> AvroFile:
    """The container in ``data``. Raises CorruptFileError with the byte where it goes wrong.

    Codecs null, deflate, bzip2 and xz need the standard library alone, snappy and zstandard use
    pyarrow; another codec raises UnsupportedTableError.
    """
    if not data.startswith(_MAGIC):
        raise CorruptFileError(path, "not an Avro file", offset=0)
    position = len(_MAGIC)
    try:
        metadata, position = _read_metadata(data, position)
        sync = data[position : position + _SYNC_SIZE]
        position += _SYNC_SIZE
        if len(sync) < _SYNC_SIZE:
            raise BadAvro("the header ends early")
    except (IndexError, UnicodeDecodeError, BadAvro) as error:
        problem = str(error) if isinstance(error, BadAvro) else "the header is damaged"
        raise CorruptFileError(path, f"bad Avro header: {problem}", offset=position) from error
    if "avro.schema" not in metadata:
        raise CorruptFileError(path, "Avro header without schema", offset=position)
    return _read_blocks(data, position, path, metadata, sync)


def _read_metadata(data: bytes, position: int) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    while True:
        count, position = read_varint(data, position)
        if count == 0:
            return metadata, position
        if count < 0:
            count = -count
            _, position = read_varint(data, position)
        for _ in range(count):
            key, position = _read_bytes(data, position)
            value, position = _read_bytes(data, position)
            metadata[key.decode()] = value


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise BadAvro(f"a value of {length} bytes does not fit the file")
    return data[position:end], end


def _read_blocks(
    data: bytes, position: int, path: str, metadata: Mapping[str, bytes], sync: bytes
) -> AvroFile:
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace") or "null"
    parts: list[bytes] = []
    blocks: list[tuple[int, int, int]] = []
    total, most = 0, _most_unpacked(len(data))
    while position < len(data):
        start = position
        try:
            count, position = read_varint(data, position)
            size, position = read_varint(data, position)
            if count < 0:
                raise BadAvro(f"a block of {count} records")
            if size < 0 or position + size + _SYNC_SIZE > len(data):
                raise BadAvro(f"a block of {size} bytes does not fit the file")
            part = _unpack(codec, data[position : position + size], most - total, path)
            position += size
            if data[position : position + _SYNC_SIZE] != sync:
                raise BadAvro("the block does not end in the sync marker")
        except (IndexError, BadAvro) as error:
            problem = str(error) if isinstance(error, BadAvro) else "the file ends early"
            raise CorruptFileError(path, f"bad Avro block: {problem}", offset=start) from error
        position += _SYNC_SIZE
        total += len(part)
        parts.append(part)
        blocks.append((count, total, start))
    return AvroFile(path, metadata, b"".join(parts), tuple(blocks))


def unpack_block(codec: str, packed: bytes, path: str) -> bytes:
    """The bytes of one block. Raises BadAvro, UnsupportedTableError for an unknown codec."""
    return _unpack(codec, packed, _most_unpacked(len(packed)), path)


def _most_unpacked(packed: int) -> int:
    return min(max(_UNPACKED_TIMES * packed, _UNPACKED_SMALL), _UNPACKED_END)


def _unpack(codec: str, packed: bytes, limit: int, path: str) -> bytes:
    match codec:
        case "null":
            return packed
        case "deflate":
            return _inflate(packed, limit)
        case "bzip2" | "xz":
            return _standard(codec, packed, limit)
        case "snappy" | "zstandard":
            return _arrow(codec, packed, limit)
        case _:
            raise UnsupportedTableError(f"Avro codec {codec[:40]!r}", path=path)


def _inflate(packed: bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj(-15)
    try:
        parts = [inflate.decompress(packed, _STEP)]
        total = len(parts[0])
        # Output may still come when all input is taken, so only the end or nothing new ends it.
        while total <= limit and not inflate.eof and parts[-1]:
            parts.append(inflate.decompress(inflate.unconsumed_tail, _STEP))
            total += len(parts[-1])
    except zlib.error as error:
        raise BadAvro(f"not deflate: {error}") from error
    if total > limit:
        raise _too_large(limit)
    if not inflate.eof:
        raise BadAvro("deflate data ends early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _standard(codec: str, packed: bytes, limit: int) -> bytes:
    import bz2
    import lzma

    unpack: bz2.BZ2Decompressor | lzma.LZMADecompressor
    if codec == "bzip2":
        unpack = bz2.BZ2Decompressor()
    else:
        unpack = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    parts: list[bytes] = []
    total = 0
    try:
        while not unpack.eof:
            parts.append(unpack.decompress(packed, _STEP))
            packed, total = b"", total + len(parts[-1])
            if total > limit:
                raise _too_large(limit)
            if not parts[-1] and not unpack.eof:
                raise BadAvro(f"{codec} data ends early")
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise BadAvro(f"not {codec}: {error}") from error
    return b"".join(parts)


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
