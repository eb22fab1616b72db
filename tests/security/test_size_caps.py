"""Metadata that exceeds its size limit, as stored or after decompression."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest

from icesql.catalog.current_metadata import find_current_metadata, read_metadata
from icesql.errors import CorruptFileError, ScanLimitError
from icesql.iceberg.avro.container import read_avro_file
from icesql.iceberg.avro.values import encode_varint
from icesql.iceberg.puffin import read_puffin_footer
from icesql.storage.open import Storage, most_of_manifest
from tests import warm
from tests.catalog.tables import metadata

SYNC = bytes(16)
METADATA = metadata("/nowhere")


def sparse(path: Path, size: int, start: bytes = b"") -> str:
    path.write_bytes(start)
    os.truncate(path, size)
    return str(path)


def blob(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def avro(codec: bytes, packed: bytes) -> bytes:
    pairs = {b"avro.schema": b'"long"', b"avro.codec": codec}
    head = b"".join(blob(key) + blob(value) for key, value in pairs.items())
    header = b"Obj\x01" + encode_varint(len(pairs)) + head + b"\x00" + SYNC
    return header + encode_varint(1) + blob(packed) + SYNC


def test_a_long_metadata_file_is_not_read(tmp_path: Path) -> None:
    path = sparse(tmp_path / "v1.metadata.json", 6 << 30, json.dumps(METADATA).encode())
    with pytest.raises(ScanLimitError, match=r"v1.metadata.json has 6,442,450,944 bytes"):
        read_metadata(path, Storage())


def test_a_long_hint_is_none(tmp_path: Path) -> None:
    for version in (1, 2):
        (tmp_path / f"v{version}.metadata.json").write_text(json.dumps(METADATA))
    sparse(tmp_path / "version-hint.text", 6 << 30, b"1")
    found = find_current_metadata(str(tmp_path), Storage())
    assert found == str(tmp_path / "v2.metadata.json")


def test_a_manifest_may_be_rewritten_but_not_become_another_file(tmp_path: Path) -> None:
    path = sparse(tmp_path / "m0.avro", 3 << 20)
    assert len(Storage().read(path, most=most_of_manifest(1 << 20))) == 3 << 20
    os.truncate(path, (3 << 20) + 1)
    with pytest.raises(ScanLimitError, match=r"m0.avro has 3,145,729 bytes"):
        Storage().read(path, most=most_of_manifest(1 << 20))


@pytest.mark.parametrize("told", [None, 0, -1, 1 << 40])
def test_a_length_that_says_nothing_allows_what_a_manifest_can_have(told: int | None) -> None:
    assert most_of_manifest(told) == 1 << 30


def test_room_for_a_blob_is_made_once_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "small.puffin"
    path.write_bytes(b"12345678")
    with pytest.raises(CorruptFileError, match="the file ends here"):
        Storage().read(str(path), offset=4, length=1 << 60)


def deflated(size: int) -> bytes:
    packer = zlib.compressobj(1, wbits=-15)
    step = bytes(1 << 20)
    return b"".join(packer.compress(step) for _ in range(size >> 20)) + packer.flush()


def packed_by_arrow(codec: str, size: int) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2"])
def test_an_avro_block_is_unpacked_no_further_than_its_length_allows(codec: str) -> None:
    name = {"zstandard": "zstd", "bzip2": "bz2"}.get(codec, "")
    size = 80 << 20
    packed = deflated(size) if codec == "deflate" else packed_by_arrow(name, size)
    with pytest.raises(CorruptFileError, match=r"m0.avro.*than its packed length allows"):
        read_avro_file(avro(codec.encode(), packed), "m0.avro")


def test_a_snappy_block_is_no_longer_than_snappy_can_pack() -> None:
    packed = b"\xff\xff\xff\xff\x0f" + bytes(100)
    with pytest.raises(CorruptFileError, match="than its packed length allows"):
        read_avro_file(avro(b"snappy", packed), "m0.avro")


def test_a_block_of_sixty_million_like_bytes_is_read() -> None:
    packed = deflated(60 << 20)
    assert len(read_avro_file(avro(b"deflate", packed), "m0.avro").data) == 60 << 20


@pytest.mark.parametrize("more", [-1, 0, 1, 257, 258, 259])
def test_a_block_that_ends_about_a_step_is_whole(more: int) -> None:
    plain = bytes((4 << 20) + more)
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(plain) + packer.flush()
    assert read_avro_file(avro(b"deflate", packed), "m0.avro").data == plain


def test_a_puffin_footer_has_a_size(tmp_path: Path) -> None:
    size = 1 << 30
    tail = (size - 100).to_bytes(4, "little") + bytes(4) + b"PFA1"

    def read(offset: int, length: int) -> bytes:
        assert length <= 12, "the payload was read"
        return tail[:length]

    with pytest.raises(CorruptFileError, match="a Puffin footer of"):
        read_puffin_footer("s.puffin", size, read)


PEAK = """
import resource, sys
from icesql.catalog.current_metadata import read_metadata
from icesql.errors import Error
from icesql.storage.open import Storage
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_metadata(sys.argv[1], Storage())
except Error as error:
    print(type(error).__name__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_gzip_bomb_of_metadata_stops_at_its_cap(tmp_path: Path) -> None:
    path = tmp_path / "v1.gz.metadata.json"
    packer = zlib.compressobj(wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    mebibyte = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(head + mebibyte + again * 1_022)
    done = warm.python(PEAK, path)
    assert done.returncode == 0, done.stderr
    kind, grown = done.stdout.split()
    assert kind == "CorruptFileError"
    # KiB; a little more than the 256 MiB that metadata may have.
    assert int(grown) < 400 << 10
