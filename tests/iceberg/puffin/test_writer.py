"""Puffin files and deletion vectors: bytes written by Java, and their decoded positions."""

from __future__ import annotations

import random

import pytest

from icesql.iceberg.puffin import (
    NewBlob,
    deletion_vector_blob,
    puffin_bytes,
    read_deletion_vector,
    read_puffin_footer,
)

# Of {3, 5, 7}, as Java's BitmapPositionDeleteIndex makes it.
THREE = (
    "00000026 d1d33964 0100000000000000 00000000 3a300000 01000000 0000 0200 10000000 0300 0500"
    "0700 000bc16c"
)


def test_the_bytes_are_those_of_java() -> None:
    blob = deletion_vector_blob("f", [7, 3, 5, 3])
    assert len(blob.data) == 46
    assert blob.data == bytes.fromhex(THREE)
    assert blob.properties == {"referenced-data-file": "f", "cardinality": "3"}
    assert blob.fields == (2147483645,)


@pytest.mark.parametrize(
    "positions",
    [
        [],
        [1, 3, 5, 7, 9],
        [100, 101, 2147483747, 2147483748],
        list(range(100_000)),
        [0, 1 << 32, (1 << 40) + 7],
        sorted(random.Random(3).sample(range(1 << 20), 50_000)),
    ],
    ids=lambda each: str(len(each)),
)
def test_positions_are_read_as_they_were_written(positions) -> None:
    blob = deletion_vector_blob("s3://b/é.parquet", positions)
    data, (place,), footer = puffin_bytes([blob], "icesql")
    (found,) = read_puffin_footer(
        "x", len(data), lambda start, length: data[start : start + length]
    )
    assert (found.type, found.offset, found.length) == ("deletion-vector-v1", 4, place.length)
    assert found.codec is None
    assert found.properties == {
        "referenced-data-file": "s3://b/é.parquet", "cardinality": str(len(positions)),
    }  # fmt: skip
    vector = data[place.offset : place.offset + place.length]
    assert list(read_deletion_vector(vector, path="x", cardinality=len(positions))) == positions
    assert footer == len(data) - 4 - place.length


def test_blobs_follow_each_other() -> None:
    blobs = [
        NewBlob("a", b"xx", (1,), 7, 8),
        deletion_vector_blob("f", [1]),
        NewBlob("b", b"", (2, 3)),
    ]
    data, places, _ = puffin_bytes(blobs, "icesql")
    assert [each.offset for each in places] == [4, 6, 6 + len(blobs[1].data)]
    found = read_puffin_footer("x", len(data), lambda start, length: data[start : start + length])
    assert [each.type for each in found] == ["a", "deletion-vector-v1", "b"]


def test_pyiceberg_reads_the_vector() -> None:
    from pyiceberg.table.puffin import PuffinFile

    data, _, _ = puffin_bytes([deletion_vector_blob("f", [4, 2, 9])], "icesql")
    (found,) = PuffinFile(data).to_vector().values()
    assert found.to_pylist() == [2, 4, 9]
