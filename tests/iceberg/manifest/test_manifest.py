"""Manifest lists and manifests: fields by id, inheritance, and contradictions with the list."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icesql.errors import CorruptFileError, Error, UnsupportedTableError
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING, ManifestEntries
from icesql.iceberg.manifest.filtered_manifest import decode_for_filter
from icesql.iceberg.manifest.manifest import (
    FieldSummary,
    ManifestContent,
    ManifestFile,
    decode_manifest,
    decode_manifest_list,
    snapshot_manifests,
)
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.types import (
    DATE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UUID,
    DecimalType,
    FixedType,
)
from tests.iceberg.manifest_files import (
    LIST_FIELDS,
    data_file_fields,
    entry,
    entry_schema,
    field,
    list_row,
    optional,
    partition_field,
    write_avro,
    write_contradicting,
    write_manifest,
    write_manifest_list,
)

MANIFEST = ManifestFile("s3://b/m.avro", sequence_number=5, added_snapshot_id=77)


def decode(
    data: bytes, manifest: ManifestFile = MANIFEST, types: tuple[Any, ...] = (), **more: Any
) -> ManifestEntries:
    return decode_manifest(data, manifest, path="m.avro", partition_types=types, **more)


# ------------------------------------------------------------------ manifest lists


def test_a_list_reads_in_full() -> None:
    summary = {"contains_null": True, "contains_nan": None, "lower_bound": b"a", "upper_bound": b""}
    row = list_row(content=1, partitions=[summary], first_row_id=9, key_metadata=b"k")
    assert decode_manifest_list(write_manifest_list([row]), path="l") == (
        ManifestFile(
            "s3://b/m1.avro",
            100,
            0,
            ManifestContent.DELETES,
            3,
            1,
            77,
            1,
            2,
            3,
            10,
            20,
            30,
            (FieldSummary(True, None, b"a", b""),),
            b"k",
            9,
        ),
    )


def test_old_names_are_found_by_field_id_and_missing_fields_are_unknown() -> None:
    fields = [
        field("manifest_path", 500, "string"),
        field("manifest_length", 501, "long"),
        field("partition_spec_id", 502, "int"),
        optional("added_snapshot_id", 503, "long", null_first=False),
        optional("added_data_files_count", 504, "int"),
        field("from_the_future", 599, {"type": "map", "values": ["null", "string", "int"]}),
    ]
    row = {
        "manifest_path": "/m",
        "manifest_length": 1,
        "partition_spec_id": 2,
        "added_snapshot_id": 7,
        "added_data_files_count": 4,
        "from_the_future": {"a": 1, "b": None},
    }
    unknown = {
        **row,
        "manifest_path": "/n",
        "added_data_files_count": None,
        "added_snapshot_id": None,
    }
    first, second = decode_manifest_list(write_manifest_list([row, unknown], fields), path="l")
    assert first == ManifestFile("/m", 1, 2, added_snapshot_id=7, added_files_count=4)
    assert second.added_files_count is None
    assert second.has_live_files
    assert second.entries_count is None


def test_a_list_without_any_ids_is_read_by_names() -> None:
    fields = [{k: v for k, v in each.items() if k != "field-id"} for each in LIST_FIELDS[:7]]
    row = {each["name"]: list_row()[each["name"]] for each in fields}
    (found,) = decode_manifest_list(write_manifest_list([row], fields), path="l")
    assert found.manifest_path == "s3://b/m1.avro"
    assert found.sequence_number == 3


def test_only_counts_of_zero_say_that_no_file_is_live() -> None:
    assert not ManifestFile("m", added_files_count=0, existing_files_count=0).has_live_files
    assert ManifestFile("m", added_files_count=0, existing_files_count=None).has_live_files
    assert ManifestFile("m", added_files_count=0, existing_files_count=1).has_live_files
    # No files of some rows is a damaged count: looking costs one manifest.
    some_rows = ManifestFile("m", added_files_count=0, existing_files_count=0, added_rows_count=5)
    assert some_rows.has_live_files


def test_a_cut_list_is_a_corrupt_file_wherever_it_is_cut() -> None:
    data = write_manifest_list([list_row(), list_row()], codec="deflate")
    header = data.index(data[-16:]) + 16  # up to there the file is a good list of nothing
    for end in range(len(data)):
        if end == header:
            continue
        with pytest.raises(CorruptFileError) as caught:
            decode_manifest_list(data[:end], path="l")
        assert caught.value.path == "l"


def test_an_emptied_list_contradicts_a_snapshot_with_files() -> None:
    empty = write_manifest_list([])
    snapshot = Snapshot(1, manifest_list="l", summary={"total-data-files": "2"})
    with pytest.raises(CorruptFileError, match="empty manifest list"):
        snapshot_manifests(snapshot, lambda path: empty)
    nothing = Snapshot(1, manifest_list="l", summary={"total-data-files": "0"})
    assert snapshot_manifests(nothing, lambda path: empty) == ()


def test_a_manifest_newer_than_its_snapshot_is_damage() -> None:
    data = write_manifest_list([list_row(sequence_number=3)])
    assert (
        len(snapshot_manifests(Snapshot(1, sequence_number=3, manifest_list="l"), lambda _: data))
        == 1
    )
    assert len(snapshot_manifests(Snapshot(1, manifest_list="l"), lambda _: data)) == 1
    # Other engines read a manifest that is numbered above its snapshot, and so do we.
    older = Snapshot(1, sequence_number=2, manifest_list="l")
    assert len(snapshot_manifests(older, lambda _: data)) == 1


def test_an_entry_may_be_newer_than_its_manifest() -> None:
    assert decode(write_manifest([entry(sequence_number=6)])).sequence_number == [6]


def test_errors_of_a_list_name_where_it_was_opened() -> None:
    snapshot = Snapshot(1, manifest_list="s3://gone/l")
    with pytest.raises(CorruptFileError) as caught:
        snapshot_manifests(snapshot, lambda path: b"rubbish", lambda path: "/here/l")
    assert caught.value.path == "/here/l"


def test_v1_snapshots_name_their_manifests_themselves() -> None:
    data = write_manifest([entry(status=ADDED)], metadata={"partition-spec-id": "4"})
    snapshot = Snapshot(8, manifests=("/m1", "/m2"))
    first, second = snapshot_manifests(
        snapshot, {"/m1": data, "/m2": write_manifest([])}.__getitem__
    )
    assert first.manifest_path == "/m1"
    assert first.partition_spec_id == 4
    assert second.partition_spec_id == 0
    assert first.added_files_count is None
    assert decode(data, first).snapshot_id == [8]
    assert decode(data, first).sequence_number == [0]


# ------------------------------------------------------------------ entries


def test_an_entry_reads_in_full() -> None:
    own = {"snapshot_id": -3, "sequence_number": 2, "file_sequence_number": 1}
    counts = {
        "record_count": 300,
        "file_size_in_bytes": 1 << 40,
        "column_sizes": {1: 10, 200: 1 << 50},
        "value_counts": {1: 300},
        "null_value_counts": {1: 0},
        "nan_value_counts": {},
        "lower_bounds": {1: b"", 2: b"x" * 100},
        "upper_bounds": {1: b"\x00\x02"},
        "equality_ids": None,
        "sort_order_id": 1,
        "key_metadata": b"k",
    }
    row = entry(
        "s3://b/ü.parquet",
        EXISTING,
        file_format="parquet",
        partition={"d": 19000, "s": None},
        split_offsets=[4, 1 << 33],
        **own,
        **counts,
    )
    partition = (
        partition_field("d", 1000, {"type": "int", "logicalType": "date"}),
        partition_field("s", 1001, "string"),
    )
    entries = decode(write_manifest([row], *partition), types=(DATE, STRING))
    assert entries.count == len(entries) == 1
    file = entries.data_file(0)
    expected = {
        "path": "s3://b/ü.parquet",
        "file_format": "PARQUET",
        "partition": (19000, None),
        "split_offsets": (4, 1 << 33),
        **own,
        **counts,
    }
    assert {name: getattr(file, name) for name in expected} == expected
    assert entries.lower_bound(2) == [b"x" * 100]
    assert entries.upper_bound(1) == [b"\x00\x02"]
    assert entries.upper_bound(2) == [None]
    assert entries.value_count(1) == [300]
    assert entries.null_value_count(1) == [0]
    assert entries.nan_value_count(1) == [None]
    assert entries.column_size(200) == [1 << 50]


def test_delete_files_keep_what_binds_them() -> None:
    dv = entry(
        "dv.puffin",
        content=1,
        file_format="PUFFIN",
        referenced_data_file="a.parquet",
        content_offset=4,
        content_size_in_bytes=42,
    )
    equality = entry("eq.parquet", content=2, equality_ids=[1, 3])
    manifest = ManifestFile("m", content=ManifestContent.DELETES, sequence_number=5)
    entries = decode(write_manifest([dv, equality]), manifest)
    first, second = entries.data_file(0), entries.data_file(1)
    assert first.is_deletion_vector
    assert (first.referenced_data_file, first.content_offset, first.content_size_in_bytes) == (
        "a.parquet",
        4,
        42,
    )
    assert second.equality_ids == (1, 3)


def test_new_files_inherit_their_numbers_and_old_ones_keep_theirs() -> None:
    rows = [
        entry("a", ADDED),
        entry("b", EXISTING, snapshot_id=1, sequence_number=2, file_sequence_number=None),
        entry("c", DELETED, snapshot_id=77, sequence_number=3, file_sequence_number=3),
    ]
    entries = decode(write_manifest(rows))
    assert entries.snapshot_id == [77, 1, 77]
    assert entries.sequence_number == [5, 2, 3]
    assert entries.file_sequence_number == [5, None, 3]
    assert entries.live == [True, True, False]


def test_an_old_file_without_sequence_number_is_damage_after_v1() -> None:
    data = write_manifest([entry("a", EXISTING)])
    with pytest.raises(CorruptFileError, match="sequence number"):
        decode(data)
    assert decode(data, ManifestFile("m", sequence_number=0)).sequence_number == [0]


def test_v1_manifests_lack_the_columns_of_v2() -> None:
    fields = [
        each for each in data_file_fields() if each["name"] not in ("content", "first_row_id")
    ]
    fields.insert(5, field("block_size_in_bytes", 105, "long"))
    schema = entry_schema(fields)
    schema["fields"] = [
        field("status", 0, "int"),
        field("snapshot_id", 1, "long"),
        schema["fields"][4],
    ]
    row = entry("a", EXISTING, snapshot_id=9)
    row["data_file"]["block_size_in_bytes"] = 64 << 20
    entries = decode(write_avro(schema, [row, row]), ManifestFile("m", added_snapshot_id=9))
    assert entries.content == [0, 0]
    assert entries.sequence_number == [0, 0]
    assert entries.file_sequence_number == [0, 0]
    assert entries.snapshot_id == [9, 9]
    assert entries.file_size_in_bytes == [1000, 1000]


def first_row_ids(entries: ManifestEntries) -> list[int | None]:
    return [entries.data_file(index).first_row_id for index in range(entries.count)]


def test_row_ids_are_handed_out_in_order() -> None:
    rows = [
        entry("a", ADDED, record_count=10),
        entry("b", EXISTING, record_count=5, sequence_number=1),
        entry("c", DELETED, record_count=100, sequence_number=1),
        entry("d", ADDED, record_count=7, first_row_id=3),
        entry("e", ADDED, record_count=1),
    ]
    data = write_manifest(rows)
    manifest = ManifestFile("m", sequence_number=5, first_row_id=1000)
    assert first_row_ids(decode(data, manifest)) == [1000, 1010, None, 3, 1015]
    assert first_row_ids(decode(data)) == [None] * 5  # a manifest from before v3


# ------------------------------------------------------------------ partitions


def test_partition_values_take_the_form_of_their_type() -> None:
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    decimal = {
        "type": "fixed",
        "name": "f",
        "size": 4,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    }
    partition = (
        partition_field("promoted_int", 1000, "int"),
        partition_field("promoted_date", 1001, {"type": "int", "logicalType": "date"}),
        partition_field("promoted_date_ns", 1002, {"type": "int", "logicalType": "date"}),
        partition_field("ts", 1003, micros),
        partition_field("amount", 1004, decimal),
    )
    row = entry(
        partition={
            "promoted_int": 7,
            "promoted_date": -1,
            "promoted_date_ns": 1,
            "ts": 5,
            "amount": Decimal("-1.50"),
        }
    )
    types = (LONG, TIMESTAMP, TIMESTAMP_NS, TIMESTAMP, DecimalType(9, 2))
    (value,) = decode(write_manifest([row], *partition), types=types).partition
    assert value == (7, -86_400_000_000, 86_400_000_000_000, 5, Decimal("-1.50"))
    assert str(value[4]) == "-1.50"


@pytest.mark.parametrize("lengths", [False, True])
def test_fixed_partition_values_may_carry_a_length_as_java_writes_them(lengths: bool) -> None:
    fixed = {"type": "fixed", "name": "fixed_3", "size": 3}
    uuid = {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}

    def schema(*types: Any) -> dict[str, Any]:
        fields = [partition_field(f"p{i}", 1000 + i, type_) for i, type_ in enumerate(types)]
        return entry_schema(data_file_fields(*fields))

    plain = {key: value for key, value in uuid.items() if key != "logicalType"}
    written = schema("bytes", plain, "bytes") if lengths else schema(fixed, plain, "fixed_3")
    values: list[tuple[Any, ...]] = [(b"abc", bytes(16), b"\xff\x00\x02"), (None, None, b"xyz")]
    rows = [entry(partition={f"p{i}": each for i, each in enumerate(row)}) for row in values]
    data = write_contradicting(written, schema(fixed, uuid, "fixed_3"), rows)
    found = decode(data, types=(FixedType(3), UUID, FixedType(3)))
    assert found.partition == values
    with pytest.raises(CorruptFileError):
        decode(data[:-20] + data[-16:], types=(FixedType(3), UUID, FixedType(3)))


def fixed_manifest(value: bytes, *, lengths: bool, rows: int = 1) -> bytes:
    """A manifest of one file whose partition is of type fixed, written with or without lengths."""
    fixed = {"type": "fixed", "name": "fixed_3", "size": 3}

    def schema(type_: Any) -> dict[str, Any]:
        return entry_schema(data_file_fields(partition_field("p", 1000, type_)))

    row = entry(partition={"p": value}, record_count=rows)
    return write_contradicting(schema("bytes" if lengths else fixed), schema(fixed), [row])


# The last byte goes on in the next one where a number is read from it: then the entry parses, with
# another partition and another number of rows.
HIGH = (b"\x01\x02\x80", b"\x06\x80\xff", b"\xff\xff\xff", b"ab\xc3")


@pytest.mark.parametrize("value", HIGH)
def test_a_fixed_value_with_a_length_is_not_read_as_another_one(value: bytes) -> None:
    data = fixed_manifest(value, lengths=True)
    counted = ManifestFile("m", added_files_count=1, added_rows_count=1, existing_files_count=0)
    spec = {"types": (FixedType(3),), "partition_fields": ((1000, "p"),)}
    found = decode(data, counted, **spec)
    assert (found.partition, found.record_count) == ([(value,)], [1])
    narrow = decode_for_filter(
        data, counted, frozenset(), path="m", partition_types=spec["types"],
        partition_fields=spec["partition_fields"],
    )  # fmt: skip
    assert (narrow.partition, narrow.record_count) == ([(value,)], [1])


def test_fixed_values_that_may_be_two_are_refused() -> None:
    types = (FixedType(3),)
    either = fixed_manifest(b"\x01\x02\x80", lengths=True)
    with pytest.raises(CorruptFileError, match="ambiguous"):
        decode(either, ManifestFile("m"), types=types)
    # The list is believed, whichever of the two it tells.
    for rows, value in ((1, b"\x01\x02\x80"), (128, b"\x06\x01\x02")):
        listed = ManifestFile("m", added_files_count=1, added_rows_count=rows)
        assert decode(either, listed, types=types).partition == [(value,)]
    with pytest.raises(CorruptFileError, match="none that the manifest list counts"):
        decode(either, ManifestFile("m", added_files_count=1, added_rows_count=7), types=types)
    negative = fixed_manifest(b"\x01\x02\x81", lengths=True)
    assert decode(negative, ManifestFile("m"), types=types).partition == [(b"\x01\x02\x81",)]


def test_fixed_values_without_a_length_are_as_their_schema_says() -> None:
    listed = ManifestFile("m", added_files_count=1, added_rows_count=1)
    for value in (b"\x06ab", b"abc", b"\x80\x80\x80"):
        data = fixed_manifest(value, lengths=False)
        assert decode(data, listed, types=(FixedType(3),)).partition == [(value,)]


def test_partition_values_are_found_by_id_when_the_ids_are_known() -> None:
    partition = (partition_field("b", 1001, "string"), partition_field("a", 1000, "int"))
    data = write_manifest([entry(partition={"a": 1, "b": "x"})], *partition)
    assert decode(
        data, types=(LONG, STRING), partition_fields=((1000, "p"), (1001, "q"))
    ).partition == [(1, "x")]


def test_partition_values_under_other_ids_keep_their_order() -> None:
    partition = (partition_field("a", 1000, "int"), partition_field("b", 1001, "string"))
    data = write_manifest([entry(partition={"a": 1, "b": "x"})], *partition)
    assert decode(
        data, types=(LONG, STRING), partition_fields=((1005, "x"), (1006, "y"))
    ).partition == [(1, "x")]


def test_partition_values_that_cannot_be_told_apart_are_refused() -> None:
    data = write_manifest([entry(partition={"a": 1})], partition_field("a", 1000, "int"))
    with pytest.raises(CorruptFileError, match="1 partition values where the spec has 2"):
        decode(data, types=(LONG, STRING))
    with pytest.raises(CorruptFileError, match="partition value of type string"):
        decode(data, types=(STRING,))


# ------------------------------------------------------------------ contradictions


FOUR, ONE, TWO = (
    write_manifest([entry(name, snapshot_id=77) for name in names], block_bytes=1)
    for names in ("abcd", "a", "ab")
)
CUT = FOUR[: FOUR.rindex(FOUR[-16:], 0, -16) + 16]
OTHER = write_manifest([entry("another", snapshot_id=78, record_count=11)])


@pytest.mark.parametrize(
    ("data", "length", "added", "deleted", "rows", "problem"),
    [
        (FOUR, len(FOUR), 4, 0, None, None),
        (CUT, len(FOUR), 4, 0, None, "3 entries where the manifest list says 4"),
        (ONE, len(ONE), 1, 0, 10, None),
        # another manifest in its place
        (OTHER, len(ONE), 1, 0, 10, "snapshot 77 by the manifest list, found .* snapshot 78"),
        # one wrong figure is forgiven
        (ONE, len(ONE) + 40, None, None, 10, None),
        (ONE, len(ONE), None, None, 0, None),
        # a careless list of a table that was moved
        (TWO, len(TWO) + 40, 1, 1, 0, None),
    ],
    ids=range(7),
)
def test_what_contradicts_a_list_is_noticed(
    data: bytes,
    length: int,
    added: int | None,
    deleted: int | None,
    rows: int | None,
    problem: str | None,
) -> None:
    listed = ManifestFile(
        "m",
        length,
        sequence_number=5,
        added_snapshot_id=77,
        added_files_count=added,
        existing_files_count=None if added is None else 0,
        deleted_files_count=deleted,
        added_rows_count=rows,
    )
    if problem is None:
        assert decode(data, listed).count == decode(data).count
    else:
        with pytest.raises(CorruptFileError, match=problem):
            decode(data, listed)


@pytest.mark.parametrize(
    ("content", "listed"),
    [(1, ManifestContent.DATA), (0, ManifestContent.DELETES), (3, ManifestContent.DELETES)],
)
def test_delete_files_among_data_files_are_damage(content: int, listed: ManifestContent) -> None:
    with pytest.raises(CorruptFileError, match="manifest lists files"):
        decode(
            write_manifest([entry(content=content)]),
            ManifestFile("m", content=listed, sequence_number=5),
        )


def test_an_unknown_status_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="neither existing"):
        decode(write_manifest([entry(status=3)]))


def test_encrypted_manifests_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="encrypted"):
        decode(b"AGS1" + b"\x00" * 100)


# ------------------------------------------------------------------ damage


def test_a_cut_manifest_is_a_corrupt_file_wherever_it_is_cut() -> None:
    data = write_manifest([entry("a", lower_bounds={1: b"x"}), entry("b")], codec="deflate")
    listed = ManifestFile(
        "m",
        len(data),
        sequence_number=5,
        added_files_count=2,
        existing_files_count=0,
        deleted_files_count=0,
    )
    for end in range(len(data)):
        with pytest.raises(CorruptFileError):
            decode(data[:end], listed)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_random_damage_gives_values_or_a_corrupt_file_and_never_hangs(codec: str) -> None:
    rows = [
        entry(
            f"s3://bucket/{index}.parquet",
            partition={"p": index},
            split_offsets=[4],
            value_counts=dict.fromkeys(range(1, 8), 10),
            lower_bounds=dict.fromkeys(range(1, 8), b"abcdefgh"),
        )
        for index in range(6)
    ]
    data = write_manifest(rows, partition_field("p", 1000, "int"), codec=codec, block_bytes=800)
    listed = write_manifest_list([list_row(partitions=[]), list_row()], codec=codec)
    rng = random.Random(11)
    for round_ in range(1500):
        for good in (data, listed):
            damaged = bytearray(good)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(damaged))
                match rng.randrange(3):
                    case 0:
                        damaged[at] = rng.randrange(256)
                    case 1:
                        damaged[at] ^= 1 << rng.randrange(8)
                    case _:
                        damaged[at : at + rng.randrange(1, 40)] = b"\x00" * rng.randrange(0, 40)
            try:
                if good is listed:
                    decode_manifest_list(bytes(damaged), path="l")
                    continue
                entries = decode(bytes(damaged), types=(LONG,))
                for field_id in (1, 7):
                    entries.lower_bound(field_id)
                    entries.value_count(field_id)
                for index in range(entries.count):
                    file = entries.data_file(index)
                    _ = dict(file.lower_bounds or {}), dict(file.value_counts or {})
            except Error as error:
                assert isinstance(error, CorruptFileError | UnsupportedTableError), round_  # noqa: PT017


def corpus_snapshots(corpus: Path) -> list[tuple[Any, Any, Path]]:
    found = []
    for path in sorted(corpus.rglob("*.metadata.json")):
        if path.name.startswith("."):
            continue
        try:
            metadata = parse_metadata(path.read_bytes(), str(path))
        except CorruptFileError:
            continue
        found.extend((metadata, each, path.parent) for each in metadata.snapshots.values())
    return found


def test_every_manifest_of_the_corpus_decodes(corpus: Path) -> None:
    files = 0
    for metadata, snapshot, folder in corpus_snapshots(corpus):

        def local(path: str, folder: Path = folder) -> Path:
            return folder / path.rpartition("/")[2]

        wanted = snapshot.manifest_list
        if wanted is None or not local(wanted).is_file():
            continue
        for manifest in snapshot_manifests(snapshot, lambda path, at=local: at(path).read_bytes()):
            if not local(manifest.manifest_path).is_file():
                continue
            spec = metadata.specs[manifest.partition_spec_id]
            entries = decode_manifest(
                local(manifest.manifest_path).read_bytes(),
                manifest,
                path=manifest.manifest_path,
                partition_types=partition_types(spec, metadata.file_schema),
                partition_fields=[(each.field_id, each.name) for each in spec.fields],
            )
            for index in range(entries.count):
                assert len(entries.data_file(index).partition) == len(spec.fields)
                files += 1
    assert files > 500


def test_an_empty_path_is_damage_of_the_file_that_says_so() -> None:
    with pytest.raises(CorruptFileError, match="an entry with an empty file path"):
        decode(write_manifest([entry("")]))
