"""A manifest decoded for a filter has the values of the whole decode, or is decoded whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import read_avro_file
from icesql.iceberg.avro.schema import parse_avro_schema
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.entries import FilterColumns, ManifestEntries
from icesql.iceberg.manifest.filtered_manifest import NarrowEntries, _shapes, decode_for_filter
from icesql.iceberg.manifest.manifest import ManifestFile, decode_manifest
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.types import UNKNOWN
from tests.iceberg.manifest.test_compiled_walk import BOUNDS, COUNTS, ENTRIES, LONGS, PARTITION
from tests.iceberg.manifest_files import data_file_fields, entry, entry_schema, write_avro

Node = dict[str, Any]
MAPS = ("lower_bounds", "upper_bounds", "null_value_counts", "value_counts")
FIELDS = (1, 2, 64)
WANTED = frozenset((name, field_id) for name in MAPS for field_id in FIELDS)
TYPES = (UNKNOWN,) * 3
SCHEMA = entry_schema(data_file_fields(*PARTITION))


@pytest.fixture(autouse=True)
def _nothing_learnt() -> None:
    _shapes.cache_clear()


def columns_of(entries: FilterColumns) -> Node:
    """All columns that a filter may use."""
    return {
        "live": entries.live,
        "partition": entries.partition,
        "record_count": entries.record_count,
        "unknown_counts": list(entries.unknown_counts),
        **{
            f"{name} {field_id}": entries.values_of(name, field_id)
            for name in (
                "lower_bounds", "upper_bounds", "value_counts", "null_value_counts",
                "nan_value_counts",
            )
            for field_id in (*FIELDS, 3)
        },
    }  # fmt: skip


def files_of(entries: ManifestEntries) -> list[Node]:
    """Every file with its maps decoded."""
    return [
        {
            name: dict(value) if name in MAPS and value is not None else value
            for name, value in asdict(entries.data_file(index)).items()
        }
        for index in range(entries.count)
    ]


def decoded(
    data: bytes, listed: ManifestFile, types: tuple[Any, ...] = TYPES
) -> tuple[ManifestEntries, ManifestEntries | NarrowEntries]:
    whole = decode_manifest(data, listed, path="m", form=PartitionForm(types))
    narrow = decode_for_filter(data, listed, WANTED, path="m", form=PartitionForm(types))
    return whole, narrow


def assert_same(data: bytes, listed: ManifestFile, types: tuple[Any, ...] = TYPES) -> bool:
    """Whether the manifest was decoded for the filter alone; fails if the values differ."""
    whole, narrow = decoded(data, listed, types)
    assert columns_of(narrow) == columns_of(whole)
    files = files_of(whole)
    for chosen in (range(whole.count), range(0, whole.count, 2), [whole.count - 1]):
        if whole.count and len(chosen):
            some, indexes = narrow.narrowed_to(chosen)
            found = files_of(some)
            assert [found[index] for index in indexes] == [files[index] for index in chosen]
    return isinstance(narrow, NarrowEntries)


def likely_entry(index: int, rng: random.Random, fields: int = 9, **more: Any) -> Node:
    """An entry as writers write it: all maps with the same fields, values of about one size."""
    ids = range(1, fields + 1)
    bounds = {each: rng.randbytes(8) if each % 3 else b"x" * rng.randrange(1, 17) for each in ids}
    given = {
        "sequence_number": None,
        "file_sequence_number": None,
        "snapshot_id": None,
        "record_count": rng.randrange(1 << 20),
        "file_size_in_bytes": rng.randrange(1 << 30),
        "partition": {"a": index % 7, "b": rng.choice(["north", "south", "é"]), "c": None},
        "column_sizes": {each: rng.randrange(1 << 21) for each in ids},
        "value_counts": dict.fromkeys(ids, 1 << 14),
        "null_value_counts": {each: rng.randrange(3) for each in ids},
        "nan_value_counts": {3: 0},
        "lower_bounds": bounds,
        "upper_bounds": bounds,
        "split_offsets": [4, 1 << 27],
        "sort_order_id": 0,
        **more,
    }
    return entry(f"s3://b/t/data/a={index % 7}/{'y' * rng.randrange(9)}{index}.parquet", 1, **given)


def listed(data: bytes, **more: Any) -> ManifestFile:
    given = {"added_snapshot_id": 7, "sequence_number": 3, **more}
    return ManifestFile("m", manifest_length=len(data), **given)


@pytest.mark.parametrize("block_bytes", [1, 2_000, 1 << 20])
def test_entries_of_one_shape_are_read_for_the_filter_alone(block_bytes: int) -> None:
    rng = random.Random(block_bytes)
    rows = [likely_entry(index, rng) for index in range(200)]
    data = write_avro(SCHEMA, rows, codec="deflate", block_bytes=block_bytes)
    assert assert_same(data, listed(data))


@pytest.mark.parametrize("fields", [1, 64, 100, 101, 300])
def test_tables_of_any_width(fields: int) -> None:
    rng = random.Random(fields)
    rows = [likely_entry(index, rng, fields) for index in range(30)]
    data = write_avro(SCHEMA, rows, codec="deflate", block_bytes=1 << 16)
    assert assert_same(data, listed(data))


def test_columns_of_nulls_make_other_shapes() -> None:
    rng = random.Random(1)
    rows = []
    for index in range(300):
        row = likely_entry(index, rng)
        for name in ("lower_bounds", "upper_bounds"):
            pairs = row["data_file"][name]
            row["data_file"][name] = pairs[rng.randrange(3) :] if index % 5 == 0 else pairs
        rows.append(row)
    data = write_avro(SCHEMA, rows, codec="deflate", block_bytes=1 << 16)
    assert assert_same(data, listed(data))


def test_first_row_ids_count_the_files_that_are_pruned() -> None:
    rng = random.Random(2)
    rows = [
        likely_entry(index, rng, first_row_id=None if index % 4 else index) for index in range(60)
    ]
    rows[5]["status"] = 2
    rows[5]["sequence_number"] = 1
    data = write_avro(SCHEMA, rows, codec="deflate", block_bytes=1 << 12)
    assert assert_same(data, listed(data, first_row_id=1_000))
    assert assert_same(data, listed(data))


@settings(max_examples=20)
@given(
    st.lists(ENTRIES, max_size=6),
    st.booleans(),
    st.sampled_from([1, 16_000]),
    st.none() | st.integers(0, 1 << 40),
)
def test_random_entries_say_the_same(
    rows: list[Node], null_first: bool, block_bytes: int, first_row_id: int | None
) -> None:
    for row in rows:
        row["data_file"]["content"] = 0
        row["data_file"]["file_path"] += "f"
        row["sequence_number"] = row["sequence_number"] or 0
    schema = entry_schema(
        data_file_fields(*PARTITION, null_first=null_first), null_first=null_first
    )
    data = write_avro(schema, rows, codec="null", block_bytes=block_bytes)
    assert_same(data, listed(data, first_row_id=first_row_id))


@settings(max_examples=20)
@given(
    st.lists(st.tuples(COUNTS, BOUNDS, BOUNDS, LONGS), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
)
def test_shapes_that_come_again_say_the_same(
    kinds: list[tuple[Any, Any, Any, int]], order: list[int]
) -> None:
    rows = []
    for index, kind in enumerate(order):
        counts, lower, upper, count = kinds[kind % len(kinds)]
        rows.append(
            entry(
                f"f{index}",
                record_count=abs(count) >> 1,
                null_value_counts=counts,
                lower_bounds=lower,
                upper_bounds=upper,
                partition={"a": None, "b": None, "c": None},
                sequence_number=1,
            )
        )
    data = write_avro(SCHEMA, rows, codec="null", block_bytes=200)
    _shapes.cache_clear()
    assert_same(data, listed(data))


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_say_the_same_or_fail(seed: int) -> None:
    rng = random.Random(seed)
    rows = [likely_entry(index, rng, fields=4) for index in range(12)]
    data = write_avro(SCHEMA, rows, codec="null", block_bytes=1 << 16)
    good = decode_for_filter(data, listed(data), WANTED, path="m", form=PartitionForm(TYPES))
    assert isinstance(good, NarrowEntries)
    begin = data.index(b"s3://") - 40
    narrow = 0
    for _ in range(70):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 3)):
            damaged[rng.randrange(begin, len(data) - 16)] = rng.choice((0, 1, 2, 127, 128, 255))
        damaged_bytes = bytes(damaged)
        try:
            narrow += assert_same(damaged_bytes, listed(data))
        except CorruptFileError:
            continue  # other values, such as a path, are decoded only when a file remains
    assert narrow > 5


def test_blocks_of_counted_bytes_are_read_for_the_filter_too() -> None:
    rng = random.Random(3)
    rows = [likely_entry(index, rng, fields=4) for index in range(3)]
    data = write_avro(SCHEMA, rows, codec="null", block_bytes=1 << 16)
    whole, narrow = decoded(data, listed(data))
    assert isinstance(narrow, NarrowEntries)
    file = narrow.file
    counted = b"".join(_with_counted_blocks(file.data[begin:end]) for begin, end in _spans(narrow))
    other = replace(file, data=counted, blocks=((3, len(counted), 0),))
    found = decode_for_filter(other, listed(data), WANTED, path="m", form=PartitionForm(TYPES))
    assert isinstance(found, NarrowEntries)
    assert columns_of(found) == columns_of(whole)
    assert files_of(found.narrowed_to(range(3))[0]) == files_of(whole)
    walked = read_manifest(other, PartitionForm(TYPES)).maps["column_sizes"]
    assert [walked[index] for index in range(3)] == [
        whole.maps["column_sizes"][index] for index in range(3)
    ]


@pytest.mark.parametrize("size", [-1, 0, 1, 3])
def test_a_block_that_lies_about_its_bytes_is_read_by_its_items(size: int) -> None:
    rows = [likely_entry(index, random.Random(3), fields=4) for index in range(2)]
    data = write_avro(SCHEMA, rows, codec="null", block_bytes=1 << 16)
    whole, narrow = decoded(data, listed(data))
    assert isinstance(narrow, NarrowEntries)
    lies = b"".join(
        _with_counted_blocks(narrow.file.data[begin:end], size) for begin, end in _spans(narrow)
    )
    file = replace(narrow.file, data=lies, blocks=((2, len(lies), 0),))
    assert read_manifest(file, PartitionForm(TYPES)).path == whole.path


def _spans(narrow: NarrowEntries) -> list[tuple[int, int]]:
    spans, position = [], 0
    for length in narrow._lengths:
        spans.append((position, position + length))
        position += length
    return spans


def _with_counted_blocks(encoded: bytes, size: int | None = None) -> bytes:
    """The column sizes, the first map of an entry, as a block with its byte count."""
    from icesql.iceberg.avro.values import encode_varint, read_varint
    from icesql.iceberg.manifest.entries import read_map

    at = next(
        place
        for place in range(len(encoded))
        if encoded[place : place + 3] == b"\x02\x08\x02" and _is_map(encoded, place + 1)
    )
    _, begin = read_varint(encoded, at + 1)
    _, end = read_map(encoded, at + 1, "long")
    counted = encode_varint(-4) + encode_varint(end - 1 - begin if size is None else size)
    return encoded[: at + 1] + counted + encoded[begin:]


def _is_map(encoded: bytes, place: int) -> bool:
    from icesql.iceberg.manifest.entries import read_map

    return set(read_map(encoded, place, "long")[0]) == {1, 2, 3, 4}


def test_every_manifest_of_the_corpus_says_the_same(corpus: Path) -> None:
    narrow = 0
    for path in sorted(corpus.rglob("*.avro")):
        data = path.read_bytes()
        file = read_avro_file(data, str(path))
        if b'"manifest_entry"' not in file.schema:
            continue
        entry_fields = parse_avro_schema(file.schema).fields
        record = next(each for each in entry_fields if each.name == "data_file").node
        partition = next(each for each in record.fields if each.name == "partition").node
        types = (UNKNOWN,) * len(partition.fields)
        if set(read_manifest(file, PartitionForm(types)).content) - {0}:
            continue  # deletes
        for first_row_id in (None, 1 << 40):
            given = ManifestFile(
                str(path),
                manifest_length=len(data),
                added_snapshot_id=7,
                sequence_number=1,
                first_row_id=first_row_id,
            )
            try:
                narrow += assert_same(data, given, types)
            except CorruptFileError as error:  # its entry in the manifest list is unknown here
                if "lacks its sequence number" not in str(error):
                    raise
    assert narrow > 300
