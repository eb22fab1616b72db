"""Deletion vectors against a writer of the Roaring format made from its specification."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.errors import CorruptFileError
from icesql.iceberg.puffin import read_deletion_vector
from tests.writer.roaring import MAGIC, bitmap, frame
from tests.writer.roaring import deletion_vector as vector

DENSE = [*range(0, 130_000, 2), *range(200_000, 300_000)]


@pytest.mark.parametrize("with_runs", [False, True])
@pytest.mark.parametrize(
    "positions",
    [
        [],
        [0],
        [1, 3, 5, 7, 9],
        [65535, 65536, 1 << 32, (1 << 32) + 5, (1 << 63) - 1],
        list(range(4096)),
        list(range(4097)),
        list(range(65536)),
        DENSE,
        [k << 16 for k in range(10)],
    ],
    ids=len,
)
def test_positions_come_back_in_order(positions: list[int], with_runs: bool) -> None:
    blob = vector(positions, with_runs=with_runs)
    assert list(read_deletion_vector(blob, path="dv", cardinality=len(positions))) == positions


@given(st.sets(st.integers(0, 200_000) | st.integers(0, (1 << 63) - 1), max_size=60), st.booleans())
def test_any_set_of_positions_comes_back(positions: set[int], with_runs: bool) -> None:
    assert list(read_deletion_vector(vector(positions, with_runs=with_runs), path="dv")) == sorted(
        positions
    )


def test_a_vector_of_a_java_writer_reads() -> None:
    # 5 of 10 rows, as the reference implementation serialises it.
    blob = bytes.fromhex(
        "0000002a"
        "d1d33964"
        "0100000000000000"
        "00000000"
        "3a300000"
        "01000000"
        "0000"
        "0400"
        "10000000"
        "01000300050007000900"
    )
    blob += struct.pack(">I", zlib.crc32(blob[4:]))
    assert list(read_deletion_vector(blob, path="dv", cardinality=5)) == [1, 3, 5, 7, 9]


def one_key(payload: bytes, key: int = 0) -> bytes:
    return frame(struct.pack("<QI", 1, key) + payload)


@pytest.mark.parametrize(
    ("blob", "problem"),
    [
        (b"", "0 bytes"),
        (vector([1])[:-1], "says"),
        (vector([1]) + b"\x00", "says"),
        (vector([1]).replace(MAGIC, b"\xd1\xd3\x39\x65"), "magic"),
        (vector([1])[:-1] + b"\x00", "checksum"),
        (one_key(bitmap([1]), key=1 << 31), "beyond 63 bits"),
        (
            frame(struct.pack("<QI", 2, 5) + bitmap([1]) + struct.pack("<I", 5) + bitmap([1])),
            "not a valid",
        ),
        (frame(struct.pack("<Q", 1 << 60)), "not a valid"),
        (one_key(struct.pack("<I", 99)), "not a valid"),
        (one_key(struct.pack("<II", 12346, 1 << 20)), "not a valid"),
        (one_key(bitmap([1, 2]).replace(b"\x01\x00\x02\x00", b"\x02\x00\x02\x00")), "not a valid"),
        (one_key(bitmap(range(5000))[:-1] + b"\xff"), "not a valid"),
        (
            one_key(
                struct.pack("<IB", 12347, 1)
                + struct.pack("<HH", 0, 9)
                + struct.pack("<HHHHH", 2, 0, 4, 3, 4)
            ),
            "not a valid",
        ),
        (
            one_key(
                struct.pack("<IB", 12347, 1)
                + struct.pack("<HH", 0, 9)
                + struct.pack("<HHH", 1, 65530, 9)
            ),
            "not a valid",
        ),
    ],
)
def test_damage_is_named(blob: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem) as caught:
        read_deletion_vector(blob, path="s3://b/dv.puffin")
    assert caught.value.path == "s3://b/dv.puffin"


@pytest.mark.parametrize("cardinality", [0, 2, 4])
def test_another_number_of_positions_than_promised_is_damage(cardinality: int) -> None:
    with pytest.raises(CorruptFileError):
        read_deletion_vector(vector([1, 2, 3]), path="dv", cardinality=cardinality)


def test_a_small_blob_cannot_ask_for_endless_memory() -> None:
    full = struct.pack("<HHH", 1, 0, 65535)
    count = 65536
    header = b"".join(struct.pack("<HH", key, 65535) for key in range(count))
    payload = struct.pack("<I", 12347 | (count - 1) << 16) + b"\xff" * (count // 8) + header
    with pytest.raises(CorruptFileError, match="the manifest says 10"):
        read_deletion_vector(
            one_key(payload + b"\x00" * 4 * count + full * count), path="dv", cardinality=10
        )


def test_random_damage_never_raises_anything_else() -> None:
    rng = random.Random(3)
    for _ in range(1000):
        body = bytearray(vector([*range(50), 70_000, 1 << 33], with_runs=True)[8:-4])
        for _ in range(rng.randrange(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        try:
            found = read_deletion_vector(frame(bytes(body)), path="dv", cardinality=52)
        except CorruptFileError:
            continue
        assert list(found) == sorted(set(found))
