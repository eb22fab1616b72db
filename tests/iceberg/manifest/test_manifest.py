"""Manifest lists and manifests: fields by id, inheritance, and contradictions with the list."""

from __future__ import annotations

import json
import random
from ast import literal_eval
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icesql.errors import CorruptFileError, Error, UnsupportedTableError
from icesql.iceberg.manifest.entries import ADDED, EXISTING, ManifestEntries
from icesql.iceberg.manifest.filtered_manifest import decode_for_filter
from icesql.iceberg.manifest.manifest import (
    FieldSummary,
    ManifestContent,
    ManifestFile,
    decode_manifest,
    decode_manifest_list,
    snapshot_manifests,
)
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.types import (
    LONG,
    UUID,
    DecimalType,
    FixedType,
)
from tests.columns import type_of
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
from tests.scenes import Scene, Stage, scenes

MANIFEST = ManifestFile("s3://b/m.avro", sequence_number=5, added_snapshot_id=77)


def decode(
    data: bytes, manifest: ManifestFile = MANIFEST, types: tuple[Any, ...] = (), fields: Any = None
) -> ManifestEntries:
    return decode_manifest(data, manifest, path="m.avro", form=PartitionForm(types, fields))


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


class Manifest(Stage):
    """Entries of a manifest that is written and decoded; values are literals of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []
        self.fields: list[Any] = []
        self.given: dict[str, Any] = {"sequence_number": 5, "added_snapshot_id": 77}

    def entry(self, path: str, *words: str) -> None:
        self.rows.append(entry(literal_eval(path), **options(words)))

    def field(self, name: str, number: str, kind: str) -> None:
        """A field of the partition, of a type of Avro as JSON."""
        self.fields.append(partition_field(name, int(number), json.loads(kind)))

    def listed(self, *words: str) -> None:
        """What the manifest list says, in the place of a number and a snapshot."""
        self.given = options(words)
        self.given["content"] = ManifestContent(self.given.get("content", 0))

    def decode(self, *types: str) -> None:
        """The partition has values of these types, each behind the id of its field where it is known."""
        cut = [each.rpartition(":") for each in types]
        known = [(int(number), kind) for number, _, kind in cut if number]
        manifest = ManifestFile("m", **self.given)
        data, kinds = (
            write_manifest(self.rows, *self.fields),
            tuple(type_of(each[2]) for each in cut),
        )
        self.decoded = decode(data, manifest, kinds, tuple(known) or None)
        assert len(self.decoded) == self.decoded.count == len(self.rows)

    def has(self, name: str, text: str) -> None:
        """A column; with a number it is of the field with this id, as ``lower_bounds.2``."""
        name, _, number = name.partition(".")
        decoded = self.decoded
        found = decoded.values_of(name, int(number)) if number else getattr(decoded, name)
        assert repr(found) == repr(literal_eval(text))

    def file(self, place: str, *words: str) -> None:
        """What a file of the manifest has."""
        file = self.decoded.data_file(int(place))
        wanted = options(words)
        assert {name: getattr(file, name) for name in wanted} == wanted

    def live(self, answer: str) -> None:
        """Whether files may live in a manifest of which the list says this."""
        assert ManifestFile("m", **self.given).has_live_files == (answer == "yes")


def options(words: tuple[str, ...]) -> dict[str, Any]:
    pairs = (each.split("=", 1) for each in words)
    return {name: literal_eval(value) for name, value in pairs}


@scenes(__file__, "manifest.scenes")
def test_a_manifest_is_decoded(scene: Scene) -> None:
    Manifest().play(scene)


# ------------------------------------------------------------------ entries


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


# ------------------------------------------------------------------ partitions


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


# Read as a number, the last byte continues in the next one: then the entry parses, with another
# partition and another number of rows.
HIGH = (b"\x01\x02\x80", b"\x06\x80\xff", b"\xff\xff\xff", b"ab\xc3")


@pytest.mark.parametrize("value", HIGH)
def test_a_fixed_value_with_a_length_is_not_read_as_another_one(value: bytes) -> None:
    data = fixed_manifest(value, lengths=True)
    counted = ManifestFile("m", added_files_count=1, added_rows_count=1, existing_files_count=0)
    form = PartitionForm((FixedType(3),), ((1000, "p"),))
    found = decode_manifest(data, counted, path="m", form=form)
    assert (found.partition, found.record_count) == ([(value,)], [1])
    narrow = decode_for_filter(data, counted, frozenset(), path="m", form=form)
    assert (narrow.partition, narrow.record_count) == ([(value,)], [1])


def test_fixed_values_that_may_be_two_are_refused() -> None:
    types = (FixedType(3),)
    either = fixed_manifest(b"\x01\x02\x80", lengths=True)
    with pytest.raises(CorruptFileError, match="ambiguous"):
        decode(either, ManifestFile("m"), types=types)
    # The counts in the list decide, whichever of the two readings they match.
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
                    entries.values_of("lower_bounds", field_id)
                    entries.values_of("value_counts", field_id)
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
                form=PartitionForm.of(spec, partition_types(spec, metadata.file_schema)),
            )
            for index in range(entries.count):
                assert len(entries.data_file(index).partition) == len(spec.fields)
                files += 1
    assert files > 500


def test_a_decimal_of_a_partition_keeps_its_scale() -> None:
    fixed = {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal"}
    field = partition_field("amount", 1004, {**fixed, "precision": 9, "scale": 2})
    row = entry(partition={"amount": Decimal("-1.50")})
    ((value,),) = decode(write_manifest([row], field), types=(DecimalType(9, 2),)).partition
    assert str(value) == "-1.50"


def test_encrypted_manifests_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="encrypted"):
        decode(b"AGS1" + b"\x00" * 100)


@pytest.mark.parametrize("snapshot", [3, 0, 2])
def test_a_manifest_may_be_newer_than_its_snapshot(snapshot: int) -> None:
    """Other engines read a manifest that is numbered above its snapshot, and so do we."""
    data = write_manifest_list([list_row(sequence_number=3)])
    own = Snapshot(1, sequence_number=snapshot, manifest_list="l")
    assert len(snapshot_manifests(own, lambda _: data)) == 1


def test_a_list_without_any_ids_is_read_by_names() -> None:
    fields = [{k: v for k, v in each.items() if k != "field-id"} for each in LIST_FIELDS[:7]]
    row = {each["name"]: list_row()[each["name"]] for each in fields}
    (found,) = decode_manifest_list(write_manifest_list([row], fields), path="l")
    assert found.manifest_path == "s3://b/m1.avro"
    assert found.sequence_number == 3
