"""Table metadata: tolerant about fields that do not affect rows, strict about those that do."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from icesql.errors import CorruptFileError, Error, UnsupportedTableError
from icesql.iceberg.metadata.table_metadata import TableMetadata, parse_metadata
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import MISSING
from tests.scenes import Scene, Stage, scenes
from tests.tables import read_table

PATH = "s3://bucket/t/metadata/v1.metadata.json"


def document(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text())


def v2(**changes: Any) -> dict[str, Any]:
    node = document("v2.metadata.json") | changes
    return {key: value for key, value in node.items() if value is not ...}


def parse(node: Any, path: str = PATH) -> TableMetadata:
    return parse_metadata(json.dumps(node).encode(), path)


class Parsed(Stage):
    """A document of a file beside this one, with changes and without some keys, parsed."""

    error: Any

    def v1(self, changes: str = "{}") -> None:
        self.parsed = parse(document("v1.metadata.json") | json.loads(changes))

    def v2(self, text: str = "{}") -> None:
        changes, end = json.JSONDecoder().raw_decode(text)
        self.parsed = parse(v2(**changes, **dict.fromkeys(text[end:].split(), ...)))

    def snapshot(self, number: str) -> None:
        self.parsed.snapshot(int(number))

    def part(self, path: str) -> Any:
        """An attribute, key or item; what follows another is separated by a dot."""
        value: Any = self.parsed
        for each in path.split("."):
            match value:
                case dict():
                    value = value[int(each) if each.isdecimal() else each]
                case tuple():
                    value = value[int(each)]
                case _:
                    value = getattr(value, each)
        return value

    def has(self, path: str, text: str) -> None:
        assert json.loads(msgspec.json.encode(self.part(path))) == json.loads(text)

    def count(self, path: str, count: str) -> None:
        assert len(self.part(path)) == int(count)

    def snapshots(self, *ids: str) -> None:
        assert [*map(str, self.parsed.snapshots)] == [*ids]

    def refs(self, *wanted: str) -> None:
        found = [f"{name}={ref.snapshot_id}" for name, ref in self.parsed.refs.items()]
        assert found == [*wanted]

    def type(self, field_id: str, kind: str) -> None:
        assert str(self.parsed.schema.type_of(int(field_id))) == kind

    def type_at(self, snapshot: str, field_id: str, kind: str) -> None:
        """The type of a field in the schema of a snapshot."""
        assert str(self.schema_of(snapshot).type_of(int(field_id))) == kind

    def current_schema_at(self, snapshot: str) -> None:
        assert self.schema_of(snapshot) is self.parsed.schema

    def schema_of(self, snapshot: str) -> Schema:
        return self.parsed.schema_of(self.parsed.snapshots[int(snapshot)])

    def file_types(self, *wanted: str) -> None:
        """The ids that files may have, with their types."""
        fields = self.parsed.file_schema.field_by_id.items()
        assert {f"{number}={field.type}" for number, field in fields} == {*wanted}

    def as_of(self, timestamp_ms: str, snapshot: str) -> None:
        found = self.parsed.snapshot_as_of(int(timestamp_ms))
        assert str(found and found.snapshot_id) == snapshot

    def no_default(self) -> None:
        assert self.parsed.schema.fields[0].initial_default is MISSING

    def at_its_path(self) -> None:
        """The last error names the file."""
        assert self.error.path == PATH


@scenes(__file__, "parsed.scenes")
def test_metadata_reads(scene: Scene) -> None:
    Parsed().play(scene)


@pytest.mark.parametrize("path", [PATH, "v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_gzip_is_recognised_whatever_the_name_says(path: str) -> None:
    plain = json.dumps(v2()).encode()
    assert parse_metadata(gzip.compress(plain), path) == parse_metadata(plain, path)


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
    field = {"id": 1, "name": "a", "type": _nested(200), "required": False}
    with pytest.raises(CorruptFileError, match="nested too deeply"):
        parse(v2(schemas=[{"type": "struct", "schema-id": 1, "fields": [field]}]))


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
