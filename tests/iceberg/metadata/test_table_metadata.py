"""Table metadata: tolerant of what does not decide rows, strict about what does."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from icesql.errors import CorruptFileError, Error, UnsupportedTableError
from icesql.iceberg.metadata.snapshot import SnapshotLogEntry, SnapshotRef
from icesql.iceberg.metadata.table_metadata import TableMetadata, parse_metadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.types import INTEGER, LONG, MISSING, STRING
from tests.tables import read_table

PATH = "s3://bucket/t/metadata/v1.metadata.json"


def schema(schema_id: int, *columns: tuple[int, str, str]) -> dict[str, Any]:
    return {
        "type": "struct",
        "schema-id": schema_id,
        "fields": [
            {"id": field_id, "name": name, "type": type_, "required": False}
            for field_id, name, type_ in columns
        ],
    }


def snapshot(snapshot_id: int, timestamp_ms: int, **more: Any) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "timestamp-ms": timestamp_ms,
        "sequence-number": timestamp_ms // 1000,
        "summary": {"operation": "append", "added-records": "3"},
        "manifest-list": f"s3://bucket/t/metadata/snap-{snapshot_id}.avro",
        **more,
    }


def document(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text())


def v2(**changes: Any) -> dict[str, Any]:
    node = document("v2.metadata.json") | changes
    return {key: value for key, value in node.items() if value is not ...}


def parse(node: Any, path: str = PATH) -> TableMetadata:
    return parse_metadata(json.dumps(node).encode(), path)


def test_v2_metadata_reads_in_full() -> None:
    metadata = parse(v2())
    assert metadata.format_version == 2
    assert metadata.location == "s3://bucket/t"
    assert [column.name for column in metadata.schema.fields] == ["name", "id"]
    assert metadata.schema.type_of(1) == LONG
    assert metadata.spec == PartitionSpec(0)
    assert metadata.specs[1].fields == (PartitionField((3,), 1000, "identity", "o"),)
    assert list(metadata.snapshots) == [10, 20]
    current = metadata.current_snapshot
    assert current is not None
    assert current.snapshot_id == 20
    assert current.operation == "append"
    assert current.summary == {"added-records": "3"}
    assert metadata.refs == {"main": SnapshotRef(20, "branch")}
    assert metadata.snapshot_log == (SnapshotLogEntry(1000, 10), SnapshotLogEntry(2000, 20))
    assert metadata.properties == {"a": "b"}
    assert metadata.name_mapping is None
    assert metadata.next_row_id is None


def test_a_snapshot_knows_its_schema_and_the_file_schema_unites_all() -> None:
    metadata = parse(v2())
    assert metadata.schema_of(metadata.snapshots[10]).type_of(1) == INTEGER
    assert metadata.schema_of(metadata.snapshots[20]) is metadata.schema
    united = metadata.file_schema
    assert united.type_of(1) == LONG  # the current definition wins
    assert united.type_of(3) == STRING
    assert set(united.field_by_id) == {1, 2, 3}


def test_a_schema_id_that_is_gone_reads_as_the_current_schema() -> None:
    metadata = parse(v2(snapshots=[snapshot(20, 2000, **{"schema-id": 77})]))
    assert metadata.schema_of(metadata.snapshots[20]) is metadata.schema


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [(999, None), (1000, 10), (1001, 10), (1999, 10), (2000, 20), (2001, 20), (10**15, 20)],
)
def test_time_travel_follows_the_snapshot_log(timestamp_ms: int, expected: int | None) -> None:
    found = parse(v2()).snapshot_as_of(timestamp_ms)
    assert (found and found.snapshot_id) == expected


def test_a_rollback_counts_by_the_log_and_not_by_the_age_of_snapshots() -> None:
    log = [
        {"timestamp-ms": 1000, "snapshot-id": 10},
        {"timestamp-ms": 2000, "snapshot-id": 20},
        {"timestamp-ms": 3000, "snapshot-id": 10},
    ]
    metadata = parse(v2(**{"snapshot-log": log, "current-snapshot-id": 10}))
    assert metadata.snapshot_as_of(2500) is metadata.snapshots[20]
    assert metadata.snapshot_as_of(3500) is metadata.snapshots[10]


def test_of_two_entries_at_one_instant_the_later_written_counts() -> None:
    log = [{"timestamp-ms": 1000, "snapshot-id": 10}, {"timestamp-ms": 1000, "snapshot-id": 20}]
    found = parse(v2(**{"snapshot-log": log})).snapshot_as_of(1000)
    assert found is not None
    assert found.snapshot_id == 20


def test_an_expired_snapshot_in_the_log_is_no_snapshot() -> None:
    log = [{"timestamp-ms": 500, "snapshot-id": 5}]
    assert parse(v2(**{"snapshot-log": log})).snapshot_as_of(600) is None


V1 = document("v1.metadata.json")


def test_the_oldest_v1_metadata_reads() -> None:
    metadata = parse(V1)
    assert metadata.schema.fields[0].required
    assert metadata.spec.fields == (PartitionField((1,), 1000, "bucket[4]", "b"),)
    assert metadata.table_uuid is None
    assert metadata.last_sequence_number == 0
    assert metadata.current_snapshot is None
    assert metadata.refs == {}


def test_v1_snapshots_may_hold_their_manifests_and_no_summary() -> None:
    old = {"snapshot-id": 1, "timestamp-ms": 7, "manifests": ["/t/m1.avro", "/t/m2.avro"]}
    metadata = parse({**V1, "snapshots": [old], "current-snapshot-id": 1})
    current = metadata.current_snapshot
    assert current is not None
    assert current.manifests == ("/t/m1.avro", "/t/m2.avro")
    assert current.manifest_list is None
    assert current.operation is None
    assert current.sequence_number == 0


@pytest.mark.parametrize("nothing", [-1, None, ...])
def test_minus_one_null_and_absent_mean_no_current_snapshot(nothing: Any) -> None:
    metadata = parse(v2(**{"current-snapshot-id": nothing, "snapshot-log": []}))
    assert metadata.current_snapshot_id is None
    assert metadata.current_snapshot is None
    assert "main" not in metadata.refs


def test_branches_and_tags_are_kept() -> None:
    refs = {
        "main": {"snapshot-id": 20, "type": "branch", "min-snapshots-to-keep": 2},
        "v1.0": {"snapshot-id": 10, "type": "tag", "max-ref-age-ms": 5},
    }
    assert parse(v2(refs=refs)).refs == {
        "main": SnapshotRef(20, "branch", min_snapshots_to_keep=2),
        "v1.0": SnapshotRef(10, "tag", max_ref_age_ms=5),
    }


def test_v3_defaults_and_keys_are_kept() -> None:
    columns = schema(0, (1, "id", "int"))
    columns["fields"][0].update({"initial-default": 7, "write-default": 8})
    metadata = parse(
        v2(
            **{
                "format-version": 3,
                "schemas": [columns],
                "current-schema-id": 0,
                "next-row-id": 5,
                "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA=="}],
                "partition-specs": [{"spec-id": 0, "fields": []}],
            }
        )
    )
    assert metadata.schema.fields[0].initial_default == 7
    assert metadata.schema.fields[0].write_default == 8
    assert metadata.next_row_id == 5
    assert metadata.encryption_keys[0]["key-id"] == "k"
    assert parse(v2()).schema.fields[0].initial_default is MISSING


@pytest.mark.parametrize("path", [PATH, "v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_gzip_is_recognised_whatever_the_name_says(path: str) -> None:
    plain = json.dumps(v2()).encode()
    assert parse_metadata(gzip.compress(plain), path) == parse_metadata(plain, path)


def test_unknown_fields_and_strange_statistics_are_ignored() -> None:
    metadata = parse(
        v2(
            **{
                "from-the-future": {"x": [1]},
                "statistics": [
                    {"snapshot-id": "x"},
                    {"snapshot-id": 20, "statistics-path": "/s.puffin"},
                ],
            }
        )
    )
    assert [each.statistics_path for each in metadata.statistics] == ["/s.puffin"]


def test_newer_versions_are_refused_by_number() -> None:
    with pytest.raises(UnsupportedTableError, match="format version 4"):
        parse(v2(**{"format-version": 4}))


def test_unknown_types_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="'interval'") as caught:
        parse(v2(schemas=[schema(1, (1, "i", "interval"))]))
    assert caught.value.path == PATH


def test_fixed_values_longer_than_any_buffer_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"fixed\[999999999999\]"):
        parse(v2(schemas=[schema(1, (1, "i", "fixed[999999999999]"))]))


def _nested(depth: int) -> Any:
    type_: Any = "int"
    for level in range(depth):
        type_ = {"type": "list", "element-id": level + 10, "element": type_}
    return type_


@pytest.mark.parametrize(("changes", "problem"), read_table(__file__, "corrupt_metadata.tsv"))
def test_what_is_missing_or_of_another_kind_is_a_corrupt_file(changes: str, problem: str) -> None:
    made = {k: ... if v is None else v for k, v in json.loads(changes).items()}
    with pytest.raises(CorruptFileError, match=problem) as caught:
        parse(v2(**made))
    assert caught.value.path == PATH


def test_types_nested_too_deeply_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="nested too deeply"):
        parse(v2(schemas=[schema(1, (1, "a", _nested(200)))]))


def test_a_malformed_snapshot_closes_itself_and_not_the_table() -> None:
    broken = {"snapshot-id": 10, "timestamp-ms": "x", "manifest-list": "m"}
    metadata = parse(v2(snapshots=[broken, snapshot(20, 2000)]))
    assert metadata.current_snapshot is not None
    with pytest.raises(CorruptFileError, match="timestamp-ms") as caught:
        metadata.snapshot(10)
    assert caught.value.path == PATH


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"{", 1),
        (b'{"a": \xff}', 6),
        (b"[]", None),
        (b"null", None),
        (b"[" * 100_000, None),
        (b'{"format-version": ' + b"1" * 5000 + b"}", None),
        (gzip.compress(b"{}" * 50, mtime=0)[:-9], None),
        (b"\x1f\x8b\x08rubbish", None),
    ],
)
def test_bytes_that_are_no_metadata_are_a_corrupt_file(data: bytes, offset: int | None) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parse_metadata(data, PATH)
    if offset is not None:
        assert caught.value.offset == offset


def test_metadata_travels_to_other_processes() -> None:
    metadata = parse(v2())
    copy = pickle.loads(pickle.dumps(metadata))
    assert copy == metadata
    assert copy.current_snapshot == metadata.current_snapshot


def test_damaged_metadata_gives_icesql_errors_alone() -> None:
    good = json.dumps(v2()).encode()
    rng = random.Random(7)
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            metadata = parse_metadata(
                bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]), PATH
            )
            for each in metadata.snapshots:
                metadata.schema_of(metadata.snapshots[each])
        except Error as error:
            assert isinstance(error, CorruptFileError | UnsupportedTableError)  # noqa: PT017


def test_every_metadata_file_of_the_corpus_parses(corpus: Path) -> None:
    parsed = 0
    for path in sorted(corpus.rglob("*metadata.json*")):
        if path.name.startswith(".") or path.suffix == ".crc":
            continue
        try:
            metadata = parse_metadata(path.read_bytes(), str(path))
        except CorruptFileError as error:
            # BigQuery's stub holds properties and nothing else.
            assert "lacks format-version" in str(error)  # noqa: PT017
            continue
        parsed += 1
        assert metadata.schema.fields is not None
        _ = metadata.spec, metadata.current_snapshot, metadata.name_mapping, metadata.file_schema
        assert len(list(metadata.snapshots.values())) == len(metadata.snapshots)
    assert parsed > 100
