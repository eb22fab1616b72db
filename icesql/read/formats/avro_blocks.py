"""Avro object containers as a stream of blocks, split the way Java splits them.

A block belongs to the range that holds the sync marker before it. Source: Avro 1.12 specification,
"Object Container Files"; Avro Java, DataFileReader.sync and pastSync.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from msgspec import Struct

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import BadAvro, unpack_block
from icesql.read.formats.decode_errors import decoding

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16


class AvroBlock(Struct, frozen=True):
    """``count`` records from position ``first`` of the file on, unpacked."""

    count: int
    first: int
    data: bytes


class AvroContainer:
    """The header of a container and its blocks; the stream stays the caller's to close."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self.path, self._stream = path, stream
        if self._read(4) != _MAGIC:
            raise CorruptFileError(path, "not an Avro file", offset=0)
        self.metadata = self._read_metadata()
        self.sync = self._read(_SYNC_SIZE)
        self._begin = self._tell()
        if "avro.schema" not in self.metadata:
            raise CorruptFileError(path, "Avro header without schema", offset=self._begin)
        codec = self.metadata.get("avro.codec", b"null")
        self.codec = codec.decode("utf-8", "replace") or "null"

    def blocks(self, start: int, end: int | None) -> Iterator[AvroBlock]:
        """The blocks of the byte range in file order; ``end`` None means to the end of the file.

        Blocks before the range are stepped over, so that positions are those of the file.
        """
        first, position = 0, self._begin
        with decoding(self.path):
            self._stream.seek(position)
        while end is None or position - _SYNC_SIZE < end:
            count = self._read_long(at_end=True)
            if count is None:
                return
            size = self._read_long()
            assert size is not None
            if count < 0 or size < 0:
                raise self._corrupt(f"a block of {count} records in {size} bytes", position)
            if position - _SYNC_SIZE >= start or end is None:
                packed = self._read(size)
                try:
                    data = unpack_block(self.codec, packed, self.path)
                except BadAvro as error:
                    raise self._corrupt(str(error), position) from error
                self._check_sync(position)
                yield AvroBlock(count, first, data)
            else:
                with decoding(self.path):
                    self._stream.seek(size, 1)
                self._check_sync(position)
            first += count
            position = self._tell()

    def _check_sync(self, position: int) -> None:
        if self._read(_SYNC_SIZE) != self.sync:
            raise self._corrupt("the block does not end in the sync marker", position)

    def _read_metadata(self) -> dict[str, bytes]:
        metadata: dict[str, bytes] = {}
        while True:
            count = self._read_long()
            assert count is not None
            if count == 0:
                return metadata
            if count < 0:
                count = -count
                self._read_long()
            for _ in range(count):
                key = self._read_bytes().decode("utf-8", "replace")
                metadata[key] = self._read_bytes()

    def _read_bytes(self) -> bytes:
        size = self._read_long()
        assert size is not None
        return self._read(size)

    def _read_long(self, *, at_end: bool = False) -> int | None:
        """A zigzag integer; None at the end of the file if that is allowed here."""
        value = shift = 0
        while True:
            with decoding(self.path):
                byte = self._stream.read(1)
            if not byte:
                if at_end and shift == 0:
                    return None
                raise self._corrupt("the file ends early", self._tell())
            value |= (byte[0] & 127) << shift
            if byte[0] < 128:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise self._corrupt("integer longer than 64 bits", self._tell())

    def _read(self, size: int) -> bytes:
        if not 0 <= size < 1 << 31:
            raise self._corrupt(f"a value of {size} bytes", self._tell())
        with decoding(self.path):
            data = self._stream.read(size)
        if len(data) < size:
            raise self._corrupt("the file ends early", self._tell())
        return bytes(data)

    def _tell(self) -> int:
        with decoding(self.path):
            return self._stream.tell()

    def _corrupt(self, problem: str, offset: int) -> CorruptFileError:
        return CorruptFileError(self.path, f"bad Avro: {problem}", offset=offset)
