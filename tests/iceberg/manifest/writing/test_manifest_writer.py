"""Manifests and lists that icesql writes, as three readers decode them."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import fastavro
import pytest
from msgspec.structs import replace

from icesql.errors import InternalError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import (
    FieldSummary,
    ManifestContent,
    decode_manifest,
    decode_manifest_list,
)
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.manifest.writer import (
    UNASSIGNED,
    ListHeader,
    ManifestForm,
    added_entry,
    deleted_entry,
    existing_entry,
    field_summaries,
    write_manifest,
    write_manifest_list,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec, partition_types
from icesql.iceberg.schema import Schema
from tests.tables import read_cases

TYPES = {
    "b": (t.BOOLEAN, True), "i": (t.INTEGER, -5), "l": (t.LONG, 1 << 40), "f": (t.FLOAT, 1.5),
    "d": (t.DOUBLE, float("nan")), "dec": (t.DecimalType(20, 3), Decimal("-12.345")),
    "dec2": (t.DecimalType(20, 3), Decimal("0.001")), "date": (t.DATE, -3),
    "time": (t.TIME, 86_399_999_999), "ts": (t.TIMESTAMP, -1), "tz": (t.TIMESTAMPTZ, 7),
    "ns": (t.TIMESTAMP_NS, 1), "tzns": (t.TIMESTAMPTZ_NS, 2), "s": (t.STRING, "a/b é"),
    "u": (t.UUID, bytes(range(16))), "bin": (t.BINARY, b"\x80"),
}  # fmt: skip
SCHEMA = Schema(
    tuple(t.NestedField(n, name, type) for n, (name, (type, _)) in enumerate(TYPES.items(), 1))
)
SPEC = PartitionSpec(
    3,
    tuple(
        PartitionField((n,), 1000 + n, "identity", "9 é" if name == "s" else f"p_{name}")
        for n, name in enumerate(TYPES, 1)
    ),
)
VALUES = tuple(value for _, value in TYPES.values())
BUCKET = PartitionSpec(0, (PartitionField((2,), 1000, "bucket[4]", "i_bucket"),))


def data_file(number=1, partition=(1,), spec_id=0, **others):
    return DataFile(
        FileContent.DATA, f"s3://b/t/data/{number}.parquet", "PARQUET", spec_id, partition, 10 * number,
        100 + number, column_sizes={1: 7}, value_counts={1: 10}, null_value_counts={1: 0},
        nan_value_counts={}, lower_bounds={1: b"\x00"}, upper_bounds={1: b"\x01"},
        split_offsets=(4, 90), sort_order_id=0, **others,
    )  # fmt: skip


def form(version=2, spec=BUCKET, content=ManifestContent.DATA):
    return ManifestForm(version, spec, SCHEMA, partition_types(spec, SCHEMA), content)


def read(data, manifest, spec=BUCKET):
    types = partition_types(spec, SCHEMA)
    names = tuple((each.field_id, each.name) for each in spec.fields)
    return decode_manifest(data, manifest, path="x", form=PartitionForm(types, names))


def header(data):
    return fastavro.reader(io.BytesIO(data)).metadata


@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_are_read_as_they_were_written(version) -> None:
    older = replace(
        data_file(2), snapshot_id=5, sequence_number=3, file_sequence_number=4, first_row_id=70
    )
    gone = replace(data_file(3), snapshot_id=6, sequence_number=2, file_sequence_number=2)
    entries = [
        added_entry(data_file(1, first_row_id=99), 8),
        existing_entry(older, 8),
        deleted_entry(gone, 8),
    ]
    data, manifest = write_manifest(entries, form(version), path="m", snapshot_id=8)
    assert manifest.manifest_length == len(data)
    assert (manifest.sequence_number, manifest.min_sequence_number) == (UNASSIGNED, 3)
    files = manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count
    rows = manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count
    assert (files, rows) == ((1, 1, 1), (10, 20, 30))
    sequence = 0 if version == 1 else 9
    listed = replace(
        manifest, sequence_number=sequence, first_row_id=1000 if version == 3 else None
    )
    found = read(data, listed)
    assert found.status == [1, 0, 2]
    assert found.snapshot_id == [8, 5, 8], "the remover's id, not the adder's"
    if version > 1:
        assert found.sequence_number == [9, 3, 2]
        assert found.file_sequence_number == [9, 4, 2]
    first = found.data_file(0)
    given = {"sequence_number": sequence, "file_sequence_number": sequence, "snapshot_id": 8}
    expected = replace(data_file(1), **given, first_row_id=1000 if version == 3 else None)
    assert first == expected, "a first row id of the caller's is not kept"
    if version == 3:
        assert found.data_file(1).first_row_id == 70


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_a_manifest(version) -> None:
    import tempfile

    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestEntryStatus
    from pyiceberg.manifest import read_manifest_list as their_list

    with tempfile.TemporaryDirectory() as folder:
        data, manifest = write_manifest(
            [added_entry(data_file(1), 8)], form(version), path=f"{folder}/m.avro", snapshot_id=8
        )
        with open(f"{folder}/m.avro", "wb") as file:
            file.write(data)
        listed, _, _ = write_manifest_list([manifest], ListHeader(version, 8, None, 5))
        with open(f"{folder}/l.avro", "wb") as file:
            file.write(listed)
        files = PyArrowFileIO()
        (theirs,) = their_list(files.new_input(f"{folder}/l.avro"))
        assert (theirs.added_files_count, theirs.added_rows_count) == (1, 10)
        assert theirs.sequence_number == (0 if version == 1 else 5)
        (entry,) = theirs.fetch_manifest_entry(files)
        assert entry.status is ManifestEntryStatus.ADDED
        assert entry.data_file.file_path == data_file(1).path
        assert entry.data_file.lower_bounds == {1: b"\x00"}
        assert entry.data_file.partition[0] == 1
        assert entry.data_file.split_offsets == [4, 90]


def test_the_header_holds_schema_and_spec_in_icebergs_form() -> None:
    data, _ = write_manifest([added_entry(data_file(), 8)], form(2), path="m", snapshot_id=8)
    found = header(data)
    assert json.loads(found["schema"])["type"] == "struct"
    assert json.loads(found["partition-spec"]) == [
        {"name": "i_bucket", "transform": "bucket[4]", "source-id": 2, "field-id": 1000}
    ]
    assert (found["partition-spec-id"], found["format-version"], found["content"]) == (
        "0",
        "2",
        "data",
    )
    assert found["avro.codec"] == "deflate"
    data, _ = write_manifest([added_entry(data_file(), 8)], form(1), path="m", snapshot_id=8)
    assert "content" not in header(data)


IDS = {(file, version): ids for file, version, ids in read_cases(__file__, "field_ids.tsv", 1, 2)}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_fields_are_those_of_the_format(version) -> None:
    data, manifest = write_manifest(
        [added_entry(data_file(), 8)], form(version), path="m", snapshot_id=8
    )
    fields = json.loads(header(data)["avro.schema"])["fields"]
    assert [each["field-id"] for each in fields] == ([0, 1, 2] if version == 1 else [0, 1, 3, 4, 2])
    inner = fields[-1]["type"]
    assert inner["name"] == "r2"
    ids = [each["field-id"] for each in inner["fields"]]
    assert sorted(ids) == sorted(IDS["manifest", version])
    maps = next(each for each in inner["fields"] if each["field-id"] == 108)["type"][1]
    assert maps["logicalType"] == "map"
    assert [each["field-id"] for each in maps["items"]["fields"]] == [117, 118]
    listed, _, _ = write_manifest_list([manifest], ListHeader(version, 8, 7, 5, 0))
    fields = json.loads(header(listed)["avro.schema"])["fields"]
    assert sorted(each["field-id"] for each in fields) == sorted(IDS["list", version])
    about = header(listed)
    assert (about["snapshot-id"], about["parent-snapshot-id"]) == ("8", "7")
    assert about.get("sequence-number") == (None if version == 1 else "5")
    assert about.get("first-row-id") == ("0" if version == 3 else None)


def test_partition_values_of_every_type_are_read_as_they_were_written() -> None:
    none = (None,) * len(VALUES)
    entries = [
        added_entry(data_file(1, VALUES, 3), 8),
        added_entry(data_file(2, none, 3), 8),
    ]
    data, manifest = write_manifest(entries, form(3, SPEC), path="m", snapshot_id=8)
    found = read(data, replace(manifest, sequence_number=1), SPEC)
    assert repr(found.partition) == repr([VALUES, none])
    fields = json.loads(header(data)["avro.schema"])["fields"][-1]["type"]["fields"]
    partition = next(each for each in fields if each["field-id"] == 102)["type"]["fields"]
    (odd,) = [each for each in partition if "iceberg-field-name" in each]
    assert (odd["name"], odd["iceberg-field-name"]) == ("_9_x20_xE9", "9 é")


def test_a_partition_of_unknown_type_is_refused() -> None:
    odd = PartitionSpec(0, (PartitionField((2,), 1000, "spiral[4]", "x"),))
    with pytest.raises(UnsupportedTableError, match="writing partition field 'x'"):
        write_manifest([added_entry(data_file(), 8)], form(2, odd), path="m", snapshot_id=8)


def test_a_partition_of_fixed_bytes_is_refused() -> None:
    fixed = form(2)
    fixed = replace(fixed, types=(t.FixedType(3),))
    with pytest.raises(UnsupportedTableError, match=r"fixed\[3\], which Iceberg's libraries"):
        write_manifest([added_entry(data_file(), 8)], fixed, path="m", snapshot_id=8)


def test_a_deletion_vector_keeps_its_place() -> None:
    vector = DataFile(
        FileContent.POSITION_DELETES, "p.puffin", "PUFFIN", 0, (1,), 3, 900,
        referenced_data_file="s3://b/t/data/1.parquet", content_offset=4, content_size_in_bytes=46,
        sort_order_id=7,
    )  # fmt: skip
    made = form(3, content=ManifestContent.DELETES)
    data, manifest = write_manifest([added_entry(vector, 8)], made, path="m", snapshot_id=8)
    assert header(data)["content"] == "deletes"
    found = read(data, replace(manifest, sequence_number=9)).data_file(0)
    assert (found.content_offset, found.content_size_in_bytes) == (4, 46)
    assert found.referenced_data_file == vector.referenced_data_file
    assert found.sort_order_id is None, "only data files are sorted"
    assert found.lower_bounds is None


def test_summaries_leave_out_null_and_nan() -> None:
    nan = float("nan")
    assert field_summaries([(nan,), (None,)], [t.DOUBLE]) == (FieldSummary(True, True),)
    (found,) = field_summaries([(2.5,), (nan,), (-1.0,)], [t.DOUBLE])
    assert found == FieldSummary(
        False, True, bytes.fromhex("000000000000f0bf"), bytes.fromhex("0000000000000440")
    )
    assert field_summaries([("b" * 40,), ("a" * 40,)], [t.STRING]) == (
        FieldSummary(False, False, b"a" * 40, b"b" * 40),
    )
    (zero,) = field_summaries([(0.0,), (-0.0,)], [t.DOUBLE])
    assert (zero.lower_bound[-1], zero.upper_bound[-1]) == (0x80, 0)
    assert field_summaries([()], []) == ()


def test_removed_entries_count_in_summaries_but_not_in_the_lowest_number() -> None:
    old = replace(data_file(1, (7,)), snapshot_id=1, sequence_number=1, file_sequence_number=1)
    new = added_entry(data_file(2, (2,)), 8)
    _, manifest = write_manifest([deleted_entry(old, 8), new], form(), path="m", snapshot_id=8)
    assert manifest.min_sequence_number == UNASSIGNED
    assert manifest.partitions == (FieldSummary(False, False, b"\x02\0\0\0", b"\x07\0\0\0"),)


def manifest_of(number, *files, snapshot_id=8, existing=(), deleted=()):
    entries = [added_entry(each, snapshot_id) for each in files]
    entries += [existing_entry(each, snapshot_id) for each in existing]
    entries += [deleted_entry(each, snapshot_id) for each in deleted]
    return write_manifest(entries, form(3), path=f"m{number}", snapshot_id=snapshot_id)[1]


def test_the_list_gives_numbers_to_the_manifests_of_its_snapshot_only() -> None:
    new = manifest_of(1, data_file(1))
    old = replace(
        manifest_of(2, data_file(2), snapshot_id=7), sequence_number=4, min_sequence_number=3
    )
    data, listed, _ = write_manifest_list([new, old], ListHeader(2, 8, 7, 9))
    assert [(m.sequence_number, m.min_sequence_number) for m in listed] == [(9, 9), (4, 3)]
    found = decode_manifest_list(data, path="l")
    assert [(m.manifest_path, m.sequence_number, m.min_sequence_number) for m in found] == [
        ("m1", 9, 9), ("m2", 4, 3),
    ]  # fmt: skip
    assert found[0].partitions == new.partitions
    stranger = manifest_of(3, data_file(3), snapshot_id=6)
    with pytest.raises(InternalError, match="no sequence number"):
        write_manifest_list([stranger], ListHeader(2, 8, 7, 9))


def rows(count):
    return replace(data_file(), record_count=count)


def test_row_ids_follow_the_order_of_the_list() -> None:
    # The vectors of Java's TestRowLineageMetadata: files of 125, 100 and 90 rows.
    a, b, c = rows(125), rows(100), rows(90)
    old = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}

    def listed(*manifests, first=0):
        _, found, given = write_manifest_list(manifests, ListHeader(3, 8, 7, 9, first))
        return [each.first_row_id for each in found], first + given

    assert listed(manifest_of(1, a)) == ([0], 125)
    assert listed(manifest_of(1, a, b)) == ([0], 225)
    first = replace(manifest_of(1, a), first_row_id=0)
    assert listed(manifest_of(2, c), first, first=225) == ([225, 0], 315)
    # A manifest of only removed files gets an id and uses none of them.
    gone = manifest_of(3, deleted=[replace(a, **old, first_row_id=0)])
    assert listed(manifest_of(2, b), gone, first=125) == ([125, 225], 225)
    kept = manifest_of(
        3, deleted=[replace(a, **old)], existing=[replace(b, **old, first_row_id=125)]
    )
    assert listed(manifest_of(2, c), kept, first=225) == ([225, 315], 415)
    merged = manifest_of(
        4, c, existing=[replace(b, **old, first_row_id=125), replace(a, **old, first_row_id=0)]
    )
    assert listed(merged, first=225) == ([225], 540)
    deletes = replace(manifest_of(5, c), content=ManifestContent.DELETES)
    assert listed(deletes, first=5) == ([None], 5)
    upgraded = [
        replace(manifest_of(1, c), first_row_id=None),
        manifest_of(2, existing=[replace(a, **old)]),
    ]
    assert listed(*upgraded) == ([0, 90], 215)
