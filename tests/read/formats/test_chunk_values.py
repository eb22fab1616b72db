"""Dictionaries and bloom filters rule row groups out, and never one with a matching row."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.read.formats import chunk_values
from icesql.read.formats.chunk_values import ChunkValues, page_encodings, row_groups, stored_value
from icesql.read.formats.open import open_reader
from icesql.read.formats.xxhash64 import xxhash64
from tests.read.read_tables import arrow_field, column, context, data_file, write_parquet

HASHES = {
    0: 17241709254077376921,
    1: 0xE934A84ADB052768,
    4: 0xFFCED8604453CC1E,
    8: 0x884A173614B81B8D,
    31: 0xC346D2B59B4D8EE1,
    32: 0xCBF59C5116FF32B4,
    100: 0x6AC1E58032166597,
}
BLOOM = {"x": {"ndv": 1000, "fpp": 0.01}}


@pytest.mark.parametrize("length", HASHES)
def test_hashes_are_those_of_xxhash(length: int) -> None:
    assert xxhash64(bytes(range(length))) == HASHES[length]


@pytest.fixture(autouse=True)
def _small_groups_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_values, "_SMALL_GROUP", 0)


def leaf(operation: Operation, literal: Any) -> Leaf:
    return Leaf(operation, Term(1, "x"), literal)


class Opened:
    """A file of one column, and what is asked of it; ``size`` and bytes may be lied about."""

    def __init__(self, path: Path, type: t.IcebergType, data: bytes | None = None) -> None:
        self.file, self.type = pq.ParquetFile(path), type
        self.data = path.read_bytes() if data is None else data
        self.stored = self.file.schema_arrow.field(0).type
        self.reads = 0

        def read_at(position: int, count: int) -> bytes:
            self.reads += 1
            return self.data[position : position + count]

        self.values = ChunkValues(self.file.metadata, len(self.data), read_at)

    def groups(self, operation: Operation, literal: Any) -> list[int]:
        asked = leaf(operation, literal)
        return [
            group
            for group in range(self.file.metadata.num_row_groups)
            if self.values.may_match(group, 0, asked, self.stored, self.type)
        ]


def written(folder: Path, values: list[Any], kind: pa.DataType, **how: Any) -> Path:
    path = folder / "f.parquet"
    how = {"row_group_size": 100, **how}
    pq.write_table(pa.table({"x": pa.array(values, kind)}), path, **how)
    return path


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_a_dictionary_knows_what_is_not_there(
    tmp_path: Path, compression: str, data_page_version: str
) -> None:
    values = ["open", "shut"] * 50 + ["open", "gone", None, None] * 25 + ["open"] * 100
    path = written(
        tmp_path,
        values,
        pa.string(),
        compression=compression,
        data_page_version=data_page_version,
        write_page_checksum=True,
    )
    opened = Opened(path, t.STRING)
    assert opened.groups(Operation.EQ, "open") == [0, 1, 2]
    assert opened.groups(Operation.EQ, "gone") == [1]
    assert opened.groups(Operation.EQ, "opening") == []
    assert opened.groups(Operation.IN, frozenset(("shut", "gone"))) == [0, 1]
    assert opened.groups(Operation.STARTS_WITH, "go") == [1]
    assert opened.groups(Operation.NOT_EQ, "open") == [0, 1]
    assert opened.groups(Operation.NOT_IN, frozenset(("open", "else"))) == [0, 1]
    assert opened.groups(Operation.LT, "a") == [0, 1, 2]
    assert opened.reads == 4  # the footer, and each dictionary


def test_a_bloom_filter_knows_what_is_not_there(tmp_path: Path) -> None:
    numbers = [random.Random(1).randrange(-(1 << 62), 1 << 62) for _ in range(300)]
    path = written(tmp_path, numbers, pa.int64(), use_dictionary=False, bloom_filter_options=BLOOM)
    opened = Opened(path, t.LONG)
    for index, number in enumerate(numbers):
        assert index // 100 in opened.groups(Operation.EQ, number)
    absent = [random.Random(2).randrange(1 << 62) for _ in range(200)]
    found = sum(len(opened.groups(Operation.EQ, each)) for each in absent)
    assert found < 0.05 * 3 * 200
    assert opened.groups(Operation.NOT_EQ, absent[0]) == [0, 1, 2]


def test_a_dictionary_that_overflowed_says_nothing(tmp_path: Path) -> None:
    values = [f"value {number}" for number in range(3000)]
    path = written(
        tmp_path, values, pa.string(), row_group_size=3000, dictionary_pagesize_limit=1000,
        write_batch_size=50,
    )  # fmt: skip
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page
    assert Opened(path, t.STRING).groups(Operation.EQ, "value 2999") == [0]
    assert Opened(path, t.STRING).groups(Operation.EQ, "no value") == [0]


TYPES: list[tuple[t.IcebergType, pa.DataType, Any]] = [
    (t.INTEGER, pa.int32(), lambda rng: rng.randrange(-50, 50)),
    (t.LONG, pa.int32(), lambda rng: rng.randrange(-50, 50)),
    (t.LONG, pa.int64(), lambda rng: rng.randrange(-(1 << 40), 1 << 40) >> 34),
    (t.DATE, pa.date32(), lambda rng: rng.randrange(100)),
    (t.TimestampType(), pa.timestamp("us"), lambda rng: rng.randrange(100)),
    (t.TimestampType(), pa.timestamp("ms"), lambda rng: rng.randrange(100)),
    (t.STRING, pa.string(), lambda rng: "äbc"[: rng.randrange(4)] * rng.randrange(3)),
    (t.STRING, pa.large_string(), lambda rng: "xyz"[rng.randrange(3) :]),
    (t.BinaryType(), pa.binary(), lambda rng: rng.randbytes(rng.randrange(2))),
    (t.FixedType(2), pa.binary(2), lambda rng: bytes(rng.choices((0, 1, 255), k=2))),
    (t.DOUBLE, pa.float64(), lambda rng: rng.choice((0.0, -0.0, 1.5, float("nan")))),
    (t.DecimalType(9, 2), pa.decimal128(9, 2), lambda rng: Decimal(rng.randrange(50)) / 4),
]


def satisfies(operation: Operation, value: Any, literal: Any) -> bool:
    match operation:
        case _ if value is None:
            return False
        case Operation.EQ:
            return bool(value == literal)
        case Operation.NOT_EQ:
            return bool(value != literal)
        case Operation.IN:
            return value in literal
        case Operation.NOT_IN:
            return value not in literal
        case _:
            return bool(value.startswith(literal))


@pytest.mark.parametrize(("type", "kind", "make"), TYPES)
def test_no_row_group_with_a_matching_row_is_ruled_out(
    tmp_path: Path, type: t.IcebergType, kind: pa.DataType, make: Any
) -> None:
    rng = random.Random(str(kind))
    ruled_out = 0
    for dictionary in (True, False):
        values = [make(rng) if rng.random() < 0.9 else None for _ in range(60)]
        path = written(
            tmp_path,
            values,
            kind,
            row_group_size=4,
            use_dictionary=dictionary,
            bloom_filter_options={"x": {"ndv": 10, "fpp": 0.1}},
        )
        opened = Opened(path, type)
        stored = pq.read_table(path).column(0)
        internal = stored.cast(pa.int64()) if pa.types.is_timestamp(kind) else stored
        internal = internal.cast(pa.int32()) if pa.types.is_date(kind) else internal
        scale = 1000 if kind == pa.timestamp("ms") else 1
        rows = [each if each is None else each * scale for each in internal.to_pylist()]
        for _ in range(60):
            literal = make(rng) * scale
            operation: Operation = rng.choice(
                [Operation.EQ, Operation.NOT_EQ, Operation.IN, Operation.NOT_IN]
                + [Operation.STARTS_WITH] * isinstance(literal, str)
            )
            if operation in (Operation.IN, Operation.NOT_IN):
                literal = frozenset((literal, make(rng) * scale))
            groups = opened.groups(operation, literal)
            for index, value in enumerate(rows):
                if satisfies(operation, value, literal):
                    assert index // 4 in groups, (operation, literal, value)
            ruled_out += 15 - len(groups)
    loose = isinstance(type, t.DoubleType | t.DecimalType) or scale == 1000
    assert (ruled_out == 0) == loose


def test_filters_that_another_writer_made(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT (i * 7919) % 100 + 10000 * (i // 2048) AS x FROM range(8192) r(i)) "
            f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
    opened = Opened(path, t.LONG)
    assert opened.groups(Operation.EQ, 20_055) == [2]
    assert len(opened.groups(Operation.EQ, 7_777_777)) < 4


@pytest.mark.parametrize("where", ["header", "hole", "beyond", "size", "end"])
def test_a_bloom_filter_that_is_not_whole_rules_nothing_out(tmp_path: Path, where: str) -> None:
    path = written(
        tmp_path, list(range(100)), pa.int64(), use_dictionary=False, bloom_filter_options=BLOOM
    )
    begin = pq.ParquetFile(path).metadata.row_group(0).column(0).bloom_filter_offset
    good = path.read_bytes()
    assert Opened(path, t.LONG).groups(Operation.EQ, 1 << 50) == []
    size_at = begin + 1
    match where:
        case "header":
            data = good[:begin] + b"\xff" * 64 + good[begin + 64 :]
        case "hole":
            data = good[:begin] + bytes(len(good) - begin)
        case "beyond":
            data = good[:begin] + b"\x15\x80\x80\x80\x80\x08" + good[begin + 6 :]
        case "size":
            data = good[:size_at] + bytes([good[size_at] ^ 2]) + good[size_at + 1 :]
        case _:
            data = good[: begin + 20]
    opened = Opened(path, t.LONG, data)
    assert opened.groups(Operation.EQ, 1 << 50) == [0]


def test_damaged_dictionaries_and_footers_rule_nothing_out_that_is_there(tmp_path: Path) -> None:
    rng = random.Random(4)
    values = ["open", "shut", "gone"] * 30
    path = written(tmp_path, values, pa.string(), compression="snappy", write_page_checksum=True)
    good = path.read_bytes()
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    for _ in range(200):
        data = bytearray(good)
        first = rng.choice((chunk.dictionary_page_offset, len(good) - 300))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(first, min(first + 60, len(good)))] = rng.randrange(256)
        data = data[: rng.choice((len(good), rng.randrange(len(good))))]
        assert Opened(path, t.STRING, bytes(data)).groups(Operation.EQ, "gone") == [0]


def test_damaged_page_encodings_end(tmp_path: Path) -> None:
    rng = random.Random(5)
    path = written(tmp_path, ["a"] * 300, pa.string())
    metadata = pq.ParquetFile(path).metadata
    good = path.read_bytes()[-8 - metadata.serialized_size : -8]
    groups = row_groups(good)
    assert page_encodings(good, groups[2], 0) == [(2, 0, 1), (0, 8, 1)]
    assert len(groups) == 3
    assert page_encodings(good, groups[0], 1) == []
    for _ in range(500):
        data = bytearray(good)
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            for group in row_groups(bytes(data)):
                page_encodings(bytes(data), group, 0)
        except (ValueError, IndexError):
            continue


def test_a_value_that_the_file_could_hold_in_several_ways_has_no_bytes() -> None:
    assert stored_value(1, t.LONG, pa.int32(), "INT32") == struct.pack("<i", 1)
    assert stored_value(1 << 40, t.LONG, pa.int32(), "INT32") is None
    assert stored_value(1, t.TimestampType(), pa.timestamp("ns"), "INT64") is None
    assert stored_value(1, t.TimestampType(), pa.date32(), "INT32") is None
    assert stored_value(1, t.LONG, pa.uint32(), "INT32") is None
    assert stored_value(1.0, t.DOUBLE, pa.float64(), "DOUBLE") is None
    assert stored_value(True, t.BOOLEAN, pa.bool_(), "BOOLEAN") is None
    assert stored_value(b"abc", t.FixedType(2), pa.binary(2), "FIXED_LEN_BYTE_ARRAY") is None


def test_rows_of_pruned_groups_are_not_read_and_the_others_are(tmp_path: Path) -> None:
    values = ["open", "shut"] * 50 + ["open", "gone"] * 50
    path = write_parquet(tmp_path, [arrow_field("s", pa.string(), 1)], [values], rows_per_group=100)
    scan = context([column(1, "s", t.STRING)])
    reader = open_reader(data_file(path), scan)
    asked = Leaf(Operation.EQ, Term(1, "s"), "gone")
    batches = reader.batches(reader.fields, start=0, length=0, whole=True, predicate=asked)
    assert [(batch.first, batch.count) for batch in batches] == [(100, 100)]
    reader.close()
