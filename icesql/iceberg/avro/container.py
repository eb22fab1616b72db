"""Avro object containers: the header and the unpacked blocks, of bytes or of a stream.

No codec unpacks further than the packed length allows.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.values import BadAvro, read_varint

# ------------------------------------------------------------------ codecs


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


# ------------------------------------------------------------------ containers


_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
_LONGEST_VARINT: Final = 10
_CUT: Final = "the file ends early"
_NO_SYNC: Final = "the block does not end in the sync marker"


class AvroFile(Frozen):
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


def read_avro_file(data: bytes, path: str) -> AvroFile:
    """The container in ``data``.

    Raises CorruptFileError with the byte where it goes wrong, also when the blocks together unpack
    to more than the length of the file allows; UnsupportedTableError for an unknown codec.
    """
    container = AvroContainer(io.BytesIO(data), path)
    parts: list[bytes] = []
    blocks: list[tuple[int, int, int]] = []
    total = 0
    for each in container.blocks(most=most_unpacked(len(data))):
        total += len(each.data)
        parts.append(each.data)
        blocks.append((each.count, total, each.offset))
    return AvroFile(path, container.metadata, b"".join(parts), tuple(blocks))


def _check_size(size: int) -> None:
    if not 0 <= size < 1 << 31:
        raise BadAvro(f"a value of {size} bytes does not fit the file")


class AvroBlock(Frozen):
    """``count`` records from position ``first`` of the file on, unpacked.

    ``offset`` is the byte of the file where the block begins.
    """

    count: int
    first: int
    data: bytes
    offset: int


class AvroContainer:
    """The header of a container and its blocks; the stream stays the caller's to close.

    Errors of the stream pass through. Raises CorruptFileError with the byte where it goes wrong.
    """

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self.path, self._stream = path, stream
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise CorruptFileError(path, "not an Avro file", offset=0)
        try:
            self.metadata = self._read_metadata()
            self.sync = self._read(_SYNC_SIZE)
        except BadAvro as error:
            problem = f"bad Avro header: {error}"
            raise CorruptFileError(path, problem, offset=stream.tell()) from error
        self._begin = stream.tell()
        if "avro.schema" not in self.metadata:
            raise CorruptFileError(path, "Avro header without schema", offset=self._begin)
        codec = self.metadata.get("avro.codec", b"null")
        self.codec = codec.decode("utf-8", "replace") or "null"

    def blocks(
        self, start: int = 0, end: int | None = None, *, most: int | None = None
    ) -> Iterator[AvroBlock]:
        """The blocks of the byte range in file order; ``end`` None means to the end of the file.

        Blocks before the range are stepped over, so that positions are those of the file. ``most``
        limits the unpacked bytes of all blocks; without it the length of each block limits its own.
        Raises CorruptFileError, UnsupportedTableError for an unknown codec.
        """
        first, position = 0, self._begin
        self._stream.seek(position)
        while end is None or position - _SYNC_SIZE < end:
            begin = self._stream.read(1)
            if not begin:
                return
            try:
                count, packed = self._read_block(begin, position - _SYNC_SIZE >= start)
                if packed is not None:
                    limit = most_unpacked(len(packed)) if most is None else most
                    data = unpack(self.codec, packed, limit, self.path)
                    most = None if most is None else most - len(data)
            except BadAvro as error:
                problem = f"bad Avro block: {error}"
                raise CorruptFileError(self.path, problem, offset=position) from error
            if packed is not None:
                yield AvroBlock(count, first, data, position)
            first += count
            position = self._stream.tell()

    def _read_block(self, begin: bytes, wanted: bool) -> tuple[int, bytes | None]:
        """The number of records and the packed bytes, None if not ``wanted``."""
        count = self._read_long(begin)
        size = self._read_long()
        if count < 0 or size < 0:
            raise BadAvro(f"a block of {count} records in {size} bytes")
        packed = None
        if wanted:
            packed = self._read(size)
        else:
            self._stream.seek(size, io.SEEK_CUR)
        if self._read(_SYNC_SIZE) != self.sync:
            raise BadAvro(_NO_SYNC)
        return count, packed

    def _read_metadata(self) -> dict[str, bytes]:
        metadata: dict[str, bytes] = {}
        while True:
            count = self._read_long()
            if count == 0:
                return metadata
            if count < 0:
                count = -count
                self._read_long()
            for _ in range(count):
                key = self._read(self._read_long()).decode("utf-8", "replace")
                metadata[key] = self._read(self._read_long())

    def _read_long(self, encoded: bytes = b"") -> int:
        """A zigzag integer, of which the first byte may have been read."""
        while not encoded or encoded[-1] > 127:
            if len(encoded) == _LONGEST_VARINT:
                break
            encoded += self._read(1)
        return read_varint(encoded, 0)[0]

    def _read(self, size: int) -> bytes:
        _check_size(size)
        data = self._stream.read(size)
        if len(data) < size:
            raise BadAvro(_CUT)
        return bytes(data)
