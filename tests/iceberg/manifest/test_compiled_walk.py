"""The compiled walk agrees with fastavro, entry by entry."""

from __future__ import annotations

import io
import json
import pickle
import random
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile, read_avro_file
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.entries import ManifestColumns
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.types import UNKNOWN, IcebergType
from tests.iceberg.manifest.fastavro_reference import read_with_fastavro
from tests.iceberg.manifest_files import (
    IDS,
    data_file_fields,
    entry,
    entry_schema,
    field,
    partition_field,
    write_avro,
    write_manifest,
)

Node = dict[str, Any]


def plain(columns: ManifestColumns, field_ids: range = range(6)) -> Node:
    """Everything the columns hold, the lazily decoded maps included."""
    count = len(columns.status)
    return {
        **{name: getattr(columns, name) for name in ManifestColumns.__slots__[:10]},
        "maps": {
            name: [None if each[index] is None else dict(each[index]) for index in range(count)]
            for name, each in columns.maps.items()
        },
        "by_field": {
            (name, field_id): each.values_of(field_id)
            for name, each in columns.maps.items()
            for field_id in field_ids
        },
        "rare": {name: dict(each) for name, each in columns.rare.items() if each},
    }


def assert_same(data: bytes, types: tuple[IcebergType, ...] = (), **more: Any) -> ManifestColumns:
    file = read_avro_file(data, "m")
    walked = read_manifest(file, PartitionForm(tuple(types)))
    expected = plain(read_with_fastavro(data, types), **more)
    assert plain(walked, **more) == expected
    return walked


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
FIELD_IDS = st.integers(0, 5) | st.integers(60, 70) | st.integers(8000, 9000)
COUNTS = st.none() | st.dictionaries(FIELD_IDS, LONGS, max_size=5)
BOUNDS = st.none() | st.dictionaries(
    FIELD_IDS, st.binary(max_size=20) | st.binary(min_size=60, max_size=140), max_size=5
)
ENTRIES = st.builds(
    entry,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.integers(0, 2),
    snapshot_id=st.none() | LONGS,
    sequence_number=st.none() | LONGS,
    file_sequence_number=st.none() | LONGS,
    content=st.integers(0, 2),
    file_format=st.sampled_from(["PARQUET", "avro"]),
    record_count=LONGS,
    file_size_in_bytes=LONGS,
    partition=st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
            "b": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            "c": st.none() | st.floats(allow_nan=False),
        }
    ),
    **dict.fromkeys(
        ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"), COUNTS
    ),
    lower_bounds=BOUNDS,
    upper_bounds=BOUNDS,
    split_offsets=st.none() | st.lists(LONGS, max_size=5),
    equality_ids=st.none() | st.lists(st.integers(0, 100), max_size=80),
    sort_order_id=st.none() | st.integers(0, 1000),
    first_row_id=st.none() | LONGS,
    referenced_data_file=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    content_offset=st.none() | LONGS,
    key_metadata=st.none() | st.binary(max_size=200),
)
PARTITION = (
    partition_field("a", 1000, "int"),
    partition_field("b", 1001, "string"),
    partition_field("c", 1002, "double"),
)


@settings(max_examples=150)
@given(
    st.lists(ENTRIES, max_size=6),
    st.booleans(),
    st.sampled_from(["null", "deflate"]),
    st.sampled_from([1, 16_000]),
)
def test_random_entries_read_the_same(
    rows: list[Node], null_first: bool, codec: str, block_bytes: int
) -> None:
    schema = entry_schema(
        data_file_fields(*PARTITION, null_first=null_first), null_first=null_first
    )
    data = write_avro(schema, rows, codec=codec, block_bytes=block_bytes)
    walked = assert_same(data, (UNKNOWN,) * 3)
    # fastavro's own container reader, without code of icesql
    direct = list(fastavro.reader(io.BytesIO(data)))
    assert walked.path == [row["data_file"]["file_path"] for row in direct]
    for name in IDS:
        maps = [row["data_file"][name] for row in direct]
        expected = [None if m is None else {p["key"]: p["value"] for p in m} for m in maps]
        assert [
            None if m is None else dict(m) for m in (walked.maps[name][i] for i in range(len(rows)))
        ] == expected


@pytest.mark.parametrize("columns", [1, 20, 63, 64, 65, 200])
def test_tables_of_any_width_read_the_same(columns: int) -> None:
    rng = random.Random(columns)
    rows = [
        entry(
            f"f{index}",
            value_counts={c: rng.randrange(1 << 20) for c in range(1, columns + 1)},
            lower_bounds={
                c: rng.randbytes(rng.choice((4, 8, 16, 0, 63, 64))) for c in range(1, columns + 1)
            },
            upper_bounds={c: rng.randbytes(8) for c in range(1, columns + 1)},
        )
        for index in range(5)
    ]
    assert_same(write_manifest(rows), field_ids=range(columns + 3))


def test_missing_renamed_reordered_and_unknown_fields_read_the_same() -> None:
    fields = [
        each
        for each in data_file_fields()
        if each["name"] not in ("content", "nan_value_counts", "split_offsets")
    ]
    for each in fields:
        each["name"] = "renamed_" + each["name"]
    fields.reverse()
    fields.insert(2, field("future_map", 900, {"type": "map", "values": "long"}))
    fields.insert(3, field("future_union", 901, ["null", "int", "string"]))
    schema = entry_schema(fields)
    schema["fields"].reverse()
    row = entry("a", value_counts={1: 2}, lower_bounds={1: b"x"})
    row["data_file"] = {f"renamed_{name}": value for name, value in row["data_file"].items()}
    row["data_file"].update(future_map={"k": 1}, future_union="text")
    walked = assert_same(write_avro(schema, [row, row]))
    assert walked.path == ["a", "a"]
    assert walked.content == [0, 0]
    assert walked.maps["lower_bounds"].values_of(1) == [b"x", b"x"]


def test_a_schema_without_ids_is_read_by_names() -> None:
    def strip(node: Any) -> Any:
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if k != "field-id"}
        return [strip(each) for each in node] if isinstance(node, list) else node

    schema = strip(entry_schema(data_file_fields()))
    walked = assert_same(write_avro(schema, [entry("a", upper_bounds={3: b"z"})]))
    assert walked.maps["upper_bounds"].values_of(3) == [b"z"]


def varint(value: int) -> bytes:
    rest, encoded = (value << 1) ^ (value >> 63), bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def test_maps_in_several_blocks_and_with_byte_sizes_read_the_same() -> None:
    good = write_manifest(
        [entry("a", value_counts={1: 10, 2: 300}, split_offsets=[4, 5])], codec="null"
    )
    one = varint(2) + varint(1) + varint(10) + varint(2) + varint(300) + b"\x00"
    items = varint(1) + varint(10)
    several = (
        varint(-1) + varint(len(items)) + items + varint(1) + varint(2) + varint(300) + b"\x00"
    )
    offsets = varint(2) + varint(4) + varint(5) + b"\x00"
    split = varint(-2) + varint(2) + varint(4) + varint(5) + b"\x00"
    file = read_avro_file(good, "m")
    assert file.data.count(one) == file.data.count(offsets) == 1
    data = file.data.replace(one, several).replace(offsets, split)
    sync = good[-16:]
    header = good[: good.index(sync) + 16]
    odd = header + varint(1) + varint(len(data)) + data + sync
    walked = assert_same(odd)
    assert walked.maps["value_counts"].values_of(2) == [300]
    assert walked.rare["split_offsets"][0] == (4, 5)


ONE_ID = {"type": "array", "items": ["null", {"type": "record", "name": "pair", "fields": [
    field("key", 9, "int"), field("value", 9, "long")]}]}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.append(field("again", 100, "string")),
        lambda fields: fields.__setitem__(
            6, field("column_sizes", 108, {"type": "map", "values": "long"})
        ),
        lambda fields: fields.__setitem__(4, field("record_count", 103, [])),
        lambda fields: fields.__setitem__(6, field("column_sizes", 108, ONE_ID)),
    ],
)
def test_what_is_no_schema_of_a_manifest_is_refused(change: Any) -> None:
    schema = entry_schema(data_file_fields())
    change(schema["fields"][-1]["type"]["fields"])
    header = {"avro.schema": json.dumps(schema).encode()}
    with pytest.raises(CorruptFileError, match="m: not a manifest: "):
        read_manifest(AvroFile("m", header, b"", ()), PartitionForm())


@pytest.mark.parametrize(
    ("name", "type_", "value", "problem"),
    [
        ("file_path", "long", 7, "a long where a str belongs"),
        ("record_count", ["string", "null", "long"], "7", "a string where a int belongs"),
        ("split_offsets", {"type": "array", "items": ["null", "long"]}, [None], "a NoneType where"),
        (
            "partition",
            ["string", {"type": "record", "name": "r102", "fields": []}],
            "x",
            "a string where a dict belongs",
        ),
    ],
)
def test_values_of_another_type_are_damage(name: str, type_: Any, value: Any, problem: str) -> None:
    schema = entry_schema(data_file_fields())
    listed = schema["fields"][-1]["type"]["fields"]
    changed = next(each for each in listed if each["name"] == name)
    changed["type"] = type_
    changed.pop("default", None)
    row = entry("a")
    row["data_file"][name] = value
    file = read_avro_file(write_avro(schema, [row]), "m")
    with pytest.raises(CorruptFileError, match=f"bad Avro block: {problem}"):
        read_manifest(file, PartitionForm())


def test_decoded_files_travel_without_the_manifest() -> None:
    data = write_manifest(
        [entry("a" * 10_000), entry("b", lower_bounds={1: b"x"}, split_offsets=[4])]
    )
    columns = assert_same(data)
    bounds = pickle.dumps(columns.maps["lower_bounds"][1])
    assert len(bounds) < 100
    assert pickle.loads(bounds) == {1: b"x"}
    assert pickle.loads(pickle.dumps(columns.rare["split_offsets"]))[1] == (4,)
    assert pickle.loads(pickle.dumps(columns.maps["lower_bounds"])).values_of(1) == [None, b"x"]


def test_every_manifest_of_the_corpus_reads_the_same(corpus: Path) -> None:
    compared = 0
    for path in sorted(corpus.rglob("*.avro")):
        file = read_avro_file(path.read_bytes(), str(path))
        if b'"manifest_entry"' not in file.schema:
            continue
        fields = fastavro.reader(io.BytesIO(path.read_bytes())).writer_schema["fields"]
        record = next(each for each in fields if each["name"] == "data_file")["type"]
        partition = next(each for each in record["fields"] if each["name"] == "partition")["type"]
        assert_same(path.read_bytes(), (UNKNOWN,) * len(partition["fields"]), field_ids=range(30))
        compared += 1
    assert compared > 250


@pytest.mark.parametrize(("columns", "files"), [(300, 5), (40, 200), (9_000, 2)])
def test_many_fields_are_found_as_one_is(columns: int, files: int) -> None:
    rng = random.Random(columns)
    rows = [
        entry(
            f"f{index}",
            value_counts={c: rng.randrange(1 << 20) for c in ids} if index % 4 else None,
            lower_bounds={c: rng.randbytes(rng.choice((4, 8, 0, 70))) for c in ids},
        )
        for index in range(files)
        for ids in [rng.sample(range(columns), columns - rng.randrange(30))]
    ]
    data = write_manifest(rows)
    many = read_manifest(read_avro_file(data, "m"), PartitionForm()).maps
    asked = rng.sample(range(columns + 2), min(columns, 100))
    for name in ("value_counts", "lower_bounds"):
        for field_id in asked:
            assert many[name].values_of(field_id) == [
                None
                if row["data_file"][name] is None
                else {p["key"]: p["value"] for p in row["data_file"][name]}.get(field_id)
                for row in rows
            ]


def test_a_predicate_on_every_column_of_a_wide_table_takes_linear_time() -> None:
    columns = 5_000
    bounds = dict.fromkeys(range(1, columns + 1), b"\x00\x00\x00\x01")
    read = read_manifest(
        read_avro_file(write_manifest([entry("f", lower_bounds=bounds)]), "m"), PartitionForm()
    )
    before = time.process_time()
    for field_id in range(1, columns + 1):
        assert read.maps["lower_bounds"].values_of(field_id) == [b"\0\0\0\1"]
    # One expression for each field took 2 ms and more, 10 s in all.
    assert time.process_time() - before < 5
