"""Puffin footers, plain and LZ4, and damaged ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.puffin import PuffinBlob, read_puffin_footer

BLOB = {
    "type": "apache-datasketches-theta-v1",
    "fields": [1],
    "snapshot-id": 1,
    "sequence-number": 1,
    "offset": 4,
    "length": 5,
    "compression-codec": "zstd",
    "properties": {"ndv": "3"},
}


def puffin(
    payload: bytes, *, flags: int = 0, length: int | None = None, magic: bytes = b"PFA1"
) -> bytes:
    size = len(payload) if length is None else length
    return b"PFA1hello" + magic + payload + struct.pack("<iI", size, flags) + b"PFA1"


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, length: data[offset : offset + length]


def footer(data: bytes) -> tuple[PuffinBlob, ...]:
    return read_puffin_footer("p", len(data), reader(data))


def payload(*blobs: object) -> bytes:
    return json.dumps({"blobs": list(blobs)}).encode()


def test_blobs_are_listed() -> None:
    expected = PuffinBlob("apache-datasketches-theta-v1", 4, 5, "zstd", {"ndv": "3"})
    assert footer(puffin(payload(BLOB))) == (expected,)


def test_a_compressed_footer_is_unpacked() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(payload(BLOB))
    assert footer(puffin(sink.getvalue().to_pybytes(), flags=1))[0].length == 5


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="flags"):
        footer(puffin(payload(BLOB), flags=2))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        puffin(payload(BLOB))[:-1],
        puffin(payload(BLOB), length=-1),
        puffin(payload(BLOB), length=10**6),
        puffin(payload(BLOB), magic=b"PFA2"),
        puffin(b"{"),
        puffin(b"[]"),
        puffin(payload(5)),
        puffin(payload({**BLOB, "offset": "four"})),
        puffin(payload({**BLOB, "offset": 0})),
        puffin(payload({**BLOB, "length": -1})),
        puffin(payload({**BLOB, "length": 10**9})),
        puffin(b"not lz4", flags=1),
    ],
)
def test_damaged_footers_are_corrupt_files(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        footer(data)
    assert caught.value.path == "p"
