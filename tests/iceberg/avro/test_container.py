"""Avro containers: every codec, and damage with its byte offset."""

from __future__ import annotations

import io
import zlib

import pyarrow as pa
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.avro.container import AvroContainer, read_avro_file
from icesql.iceberg.avro.values import BadAvro, encode_varint, read_varint

SYNC = bytes(range(16))
SCHEMA = b'"long"'


def blob(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def header(codec: bytes | None = None) -> bytes:
    pairs = {b"avro.schema": SCHEMA} | ({} if codec is None else {b"avro.codec": codec})
    body = b"".join(blob(key) + blob(value) for key, value in pairs.items())
    return b"Obj\x01" + encode_varint(len(pairs)) + body + b"\x00" + SYNC


def block(data: bytes, count: int = 1) -> bytes:
    return encode_varint(count) + blob(data) + SYNC


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def arrow(codec: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def snappy(data: bytes) -> bytes:
    return pa.compress(data, codec="snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (None, bytes),
        (b"null", bytes),
        (b"deflate", deflate),
        (b"bzip2", lambda data: arrow("bz2", data)),
        (b"snappy", snappy),
        (b"zstandard", lambda data: arrow("zstd", data)),
    ],
)
def test_blocks_of_every_codec_are_unpacked_and_joined(codec: bytes | None, pack: object) -> None:
    data = header(codec) + block(pack(b"\x02"), 1) + block(pack(b"\x04\x06"), 2)  # type: ignore[operator]
    file = read_avro_file(data, "f")
    assert file.data == b"\x02\x04\x06"
    assert [(count, end) for count, end, _ in file.blocks] == [(1, 1), (2, 3)]
    assert file.blocks[0][2] == len(header(codec))
    assert file.schema == SCHEMA


def test_metadata_in_blocks_with_byte_sizes_reads() -> None:
    pair = blob(b"avro.schema") + blob(SCHEMA)
    data = b"Obj\x01" + encode_varint(-1) + encode_varint(len(pair)) + pair + b"\x00" + SYNC
    assert read_avro_file(data, "f").schema == SCHEMA


def test_a_range_holds_the_blocks_whose_sync_marker_begins_in_it() -> None:
    blocks = [block(bytes([2 * index]) * size, size) for index, size in enumerate((3, 5, 7), 1)]
    data = header() + b"".join(blocks)
    container = AvroContainer(io.BytesIO(data), "f")
    second = len(header()) + len(blocks[0])
    marker = second - len(SYNC)
    (found,) = container.blocks(marker, marker + 1)
    assert (found.count, found.first, found.data, found.offset) == (5, 3, b"\x04" * 5, second)
    assert [each.count for each in container.blocks(0, marker)] == [3]
    assert [each.count for each in container.blocks(marker + 1, len(data))] == [7]
    assert [each.count for each in container.blocks()] == [3, 5, 7]


GOOD = header(b"deflate") + block(deflate(b"\x02"))
AT = len(header(b"deflate"))


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"Obj\x02" + GOOD[4:], 0),
        (b"PAR1" * 10, 0),
        (GOOD[:-1], AT),
        (GOOD[:-1] + b"\xff", AT),
        (GOOD + b"\x00", len(GOOD)),
        (GOOD + b"\xff" * 20, len(GOOD)),
        (header(b"deflate") + block(b"not deflate"), AT),
        (header(b"deflate") + block(deflate(b"\x02" * 99)[:-3]), AT),
        (header(b"deflate") + encode_varint(-1) + blob(deflate(b"")) + SYNC, AT),
        (header(b"deflate") + encode_varint(1) + encode_varint(1 << 60), AT),
        (header(b"snappy") + block(snappy(b"\x02")[:-1] + b"\x00"), len(header(b"snappy"))),
        (header(b"snappy") + block(b"\xff\xff\xff\xff\x7f" + b"x" * 9), len(header(b"snappy"))),
        (header(b"zstandard") + block(b"x" * 9), len(header(b"zstandard"))),
        (header(b"bzip2") + block(b"x" * 9), len(header(b"bzip2"))),
        (b"Obj\x01" + encode_varint(1 << 60) + b"\x00" * 50, None),
        (b"Obj\x01" + encode_varint(1) + blob(b"a") + encode_varint(1 << 50), None),
        (b"Obj\x01" + encode_varint(1) + blob(b"\xff") + blob(b"a") + b"\x00" + SYNC, None),
        (b"Obj\x01\x00" + SYNC, None),
        (b"Obj\x01\x00" + SYNC[:5], None),
    ],
)
def test_damage_is_a_corrupt_file_with_its_place(data: bytes, offset: int | None) -> None:
    with pytest.raises(CorruptFileError) as caught:
        read_avro_file(data, "s3://b/f.avro")
    assert caught.value.path == "s3://b/f.avro"
    with pytest.raises(CorruptFileError) as streamed:
        list(AvroContainer(io.BytesIO(data), "s3://b/f.avro").blocks())
    assert str(streamed.value) == str(caught.value)
    if offset is not None:
        assert caught.value.offset == offset


def test_unknown_codecs_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="lz9"):
        read_avro_file(header(b"lz9") + block(b""), "f")


@pytest.mark.parametrize("value", [0, -1, 1, 63, 64, -64, -65, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_integers_survive_the_round_trip(value: int) -> None:
    assert read_varint(b"x" + encode_varint(value) + b"y", 1) == (
        value,
        1 + len(encode_varint(value)),
    )


def test_integers_end_within_64_bits_and_within_the_data() -> None:
    with pytest.raises(BadAvro):
        read_varint(b"\xff" * 20, 0)
    with pytest.raises(IndexError):
        read_varint(b"\xff", 0)
