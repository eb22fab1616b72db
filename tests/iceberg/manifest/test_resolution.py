"""Manifests by any writer schema that Avro resolves to Iceberg's: what was written is read.

Writers declare everything optional, put null last, store ints as longs and strings as bytes, leave
fields out, add others, and refer to types by name. The truth here is the rows before writing.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import read_avro_file
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.manifest import ManifestFile, decode_manifest, decode_manifest_list
from icesql.iceberg.manifest.partition_values import UNSTORED, PartitionForm
from icesql.iceberg.types import BINARY, DOUBLE, LONG, STRING
from tests.iceberg.manifest_files import (
    IDS,
    LIST_FIELDS,
    data_file_fields,
    entry,
    entry_schema,
    field,
    list_row,
    optional,
    pairs,
    partition_field,
    write_avro,
    write_manifest,
    write_manifest_list,
)

Node = dict[str, Any]

SPEC = ((1000, "a"), (1001, "b/c"), (1002, "d"), (1003, "e"))
TYPES = (LONG, STRING, DOUBLE, BINARY)
PARTITION = (
    partition_field("a", 1000, "long"),
    partition_field("b_x2Fc", 1001, "string"),
    partition_field("d", 1002, "double"),
    partition_field("e", 1003, "bytes"),
)
# What a reader of the second type may find in the file. Source: Avro 1.12, "Schema Resolution".
PROMOTED = {"long": "int", "string": "bytes", "bytes": "string", "double": "float"}
UNASKED: tuple[Node, ...] = (
    field("future_map", 900, {"type": "map", "values": ["null", "long"]}),
    field("future_enum", 901, {"type": "enum", "name": "e", "symbols": ["X", "Y"]}),
    field("future_fixed", None, "f3"),
    field("future_same", 903, ["null", "f3"]),
    field("future_record", 904, {"type": "record", "name": "odd", "fields": []}),
    field("future_union", 905, ["string", "null", "double", "boolean"]),
)
UNASKED_VALUES = {
    "future_map": {"k": None, "l": 1},
    "future_enum": "Y",
    "future_fixed": b"abc",
    "future_same": b"def",
    "future_record": {},
    "future_union": True,
}
SMALL = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MAPS = st.none() | st.dictionaries(st.integers(0, 9), SMALL, max_size=3)
BOUNDS = st.none() | st.dictionaries(st.integers(0, 9), TEXT.map(str.encode), max_size=3)
ROWS = st.builds(
    entry,
    TEXT,
    st.integers(0, 2),
    snapshot_id=st.none() | SMALL,
    sequence_number=st.none() | SMALL,
    content=st.integers(0, 2),
    record_count=SMALL,
    file_size_in_bytes=SMALL,
    partition=st.fixed_dictionaries(
        {
            "a": st.none() | SMALL,
            "b_x2Fc": st.none() | TEXT,
            "d": st.none() | st.floats(width=32, allow_nan=False),
            "e": st.none() | TEXT.map(str.encode),
        }
    ),
    value_counts=MAPS,
    null_value_counts=MAPS,
    lower_bounds=BOUNDS,
    split_offsets=st.none() | st.lists(SMALL, max_size=3),
    sort_order_id=st.none() | SMALL,
    referenced_data_file=st.none() | TEXT,
    key_metadata=st.none() | TEXT.map(str.encode),
)


class _Writer:
    """A writer's way with schemas: what it promotes, and where it puts null."""

    def __init__(self, draw: Any, with_ids: bool) -> None:
        self.draw, self.with_ids, self.named = draw, with_ids, 0

    def fields(self, listed: list[Node]) -> list[Node]:
        listed = [self.field(each) for each in listed]
        return self.draw(st.permutations(listed))  # type: ignore[no-any-return]

    def field(self, given: Node) -> Node:
        made = {"name": given["name"], "type": self.optional(self.type(given["type"]))}
        if self.with_ids and "field-id" in given:
            made["field-id"] = given["field-id"]
        return made

    def type(self, given: Any) -> Any:
        match given:
            case list():
                return [self.type(each) for each in given]
            case {"type": "record", "fields": listed}:
                return {**given, "fields": self.fields(listed)}
            case {"type": "array", "items": items}:
                return {**given, "items": self.optional(self.type(items))}
            case {"type": str(kind)} if kind in PROMOTED:
                return self.type(kind)
            case str() if given in PROMOTED and self.draw(st.integers(0, 4)) == 0:
                return PROMOTED[given]
            case _:
                return given

    def optional(self, type_: Any) -> Any:
        """The type as it is, or in a union with null, in any order, and with others."""
        branches = type_ if isinstance(type_, list) else [type_]
        way = self.draw(st.sampled_from(("as is", "as is", "optional", "wide")))
        if way == "as is":
            return type_
        if way == "wide" and not {"boolean"} & {each for each in branches if isinstance(each, str)}:
            branches = [*branches, "boolean"]
        if "null" not in branches:
            branches = ["null", *branches]
        return self.draw(st.permutations(branches))


def _as_written(value: Any, type_: Any) -> Any:
    """A row as this schema stores it: text where bytes were, and the other way round."""
    if isinstance(type_, list):
        branch = next(
            (each for each in type_ if _is_of(value, each)),
            next((each for each in type_ if each not in ("null", "boolean")), None),
        )
        return None if value is None else _as_written(value, branch)
    match type_, value:
        case _, None:
            return None
        case {"type": "record", "fields": listed}, dict():
            return {
                each["name"]: _as_written(value.get(each["name"]), each["type"]) for each in listed
            }
        case {"type": "array", "items": items}, list():
            return [_as_written(each, items) for each in value]
        case "bytes", str():
            return value.encode()
        case "string", bytes():
            return value.decode()
        case _:
            return value


def _is_of(value: Any, type_: Any) -> bool:
    kind = type_["type"] if isinstance(type_, dict) else type_
    names = {"record": dict, "array": list, "boolean": bool, "map": dict, "enum": str}
    return kind in names and isinstance(value, names[kind])


@st.composite
def manifests(draw: Any) -> tuple[list[Node], bytes]:
    rows = draw(st.lists(ROWS, max_size=4))
    writer = _Writer(draw, with_ids=draw(st.booleans()))
    listed = [
        each
        for each in data_file_fields(*PARTITION)
        if each["name"] not in ("upper_bounds", "nan_value_counts", "equality_ids")
    ]
    extra = UNASKED[: draw(st.integers(0, len(UNASKED)))]
    schema = entry_schema([*listed, *extra])
    schema["fields"] = writer.fields(schema["fields"])
    schema = _defined(schema, set())
    stored = []
    for row in copy.deepcopy(rows):
        row["data_file"].update(UNASKED_VALUES)
        stored.append(_as_written(row, schema))
    return rows, write_avro(schema, stored, block_bytes=draw(st.sampled_from((1, 16_000))))


@settings(max_examples=60, deadline=None)
@given(manifests())
def test_what_was_written_is_read(made: tuple[list[Node], bytes]) -> None:
    rows, data = made
    file = read_avro_file(data, "m")
    found = read_manifest(file, PartitionForm(TYPES, SPEC))
    files = [row["data_file"] for row in rows]
    assert found.path == [each["file_path"] for each in files]
    assert found.status == [row["status"] for row in rows]
    assert found.sequence_number == [row["sequence_number"] for row in rows]
    assert found.content == [each["content"] for each in files]
    assert found.record_count == [each["record_count"] for each in files]
    assert found.partition == [
        tuple(each["partition"][name] for name in ("a", "b_x2Fc", "d", "e")) for each in files
    ]
    for name in IDS:
        maps = [None if each[name] is None else _dict(each[name]) for each in files]
        if name in found.maps:
            column = found.maps[name]
            got = [column[index] for index in range(len(files))]
            assert [None if each is None else dict(each) for each in got] == maps
        else:
            assert not any(maps)
    for name in ("split_offsets", "sort_order_id", "referenced_data_file", "key_metadata"):
        expected = {
            index: tuple(each[name]) if isinstance(each[name], list) else each[name]
            for index, each in enumerate(files)
            if each[name] is not None
        }
        assert dict(found.rare[name]) == expected


def _defined(node: Any, done: set[str]) -> Any:
    """The schema with the named type defined where it is first used."""
    if node == "f3" and node not in done:
        done.add(node)
        return {"type": "fixed", "name": "f3", "size": 3}
    if isinstance(node, dict):
        return {key: _defined(each, done) for key, each in node.items()}
    return [_defined(each, done) for each in node] if isinstance(node, list) else node


def _dict(listed: list[Node]) -> Node:
    return {each["key"]: each["value"] for each in listed}


def _everything_optional(node: Any) -> Any:
    """BigQuery's schemas: every field, item, key and value may be null, null first."""

    def nullable(type_: Any) -> Any:
        return type_ if isinstance(type_, list) else ["null", type_]

    match node:
        case {"type": "record", "fields": listed}:
            return {
                **node,
                "fields": [
                    {**each, "type": nullable(_everything_optional(each["type"]))}
                    for each in listed
                ],
            }
        case {"type": "array", "items": items}:
            return {**node, "items": nullable(_everything_optional(items))}
        case list():
            return [_everything_optional(each) for each in node]
        case _:
            return node


def test_a_schema_where_everything_may_be_null_is_read() -> None:
    schema = _everything_optional(entry_schema(data_file_fields(*PARTITION)))
    row = entry(
        "a",
        record_count=None,
        content=None,
        lower_bounds={1: b"x"},
        split_offsets=[4, 9],
        partition={"a": 1, "b_x2Fc": "t", "d": None, "e": None},
    )
    data = write_avro(schema, [row, entry("b", partition=None)])
    found = decode_manifest(data, ManifestFile("m"), path="m", form=PartitionForm(TYPES, SPEC))
    assert found.path == ["a", "b"]
    assert found.record_count == [-1, 10]  # below zero: unknown
    assert found.content == [0, 0]
    assert found.partition == [(1, "t", None, None), (UNSTORED,) * 4]
    assert found.maps["lower_bounds"].values_of(1) == [b"x", None]
    assert found.rare["split_offsets"][0] == (4, 9)


@pytest.mark.parametrize("name", ["status", "data_file", "file_path", "file_size_in_bytes"])
def test_null_where_a_file_would_be_lost_is_corrupt(name: str) -> None:
    schema = _everything_optional(entry_schema(data_file_fields()))
    row = entry("a")
    (row if name in row else row["data_file"])[name] = None
    with pytest.raises(CorruptFileError):
        decode_manifest(
            write_avro(schema, [row]), ManifestFile("m"), path="m", form=PartitionForm()
        )


@pytest.mark.parametrize("nullable", [False, True])
def test_a_manifest_list_by_another_schema_is_read(nullable: bool) -> None:
    fields = copy.deepcopy(LIST_FIELDS)
    fields[0]["type"] = "bytes"
    fields[7]["type"] = "long"
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    row = list_row(manifest_path=b"s3://b/m", partitions=[{"contains_null": True}])
    if nullable:
        schema = _everything_optional(schema)
        row |= {"content": None, "sequence_number": None, "added_files_count": None}
        row["partitions"] = [{"contains_null": None, "lower_bound": b"a"}]
    (found,) = decode_manifest_list(write_avro(schema, [row]), path="l")
    assert found.manifest_path == "s3://b/m"
    assert found.added_files_count == (None if nullable else 1)
    assert found.content == 0
    assert found.partitions is not None
    assert found.partitions[0].contains_null


def test_a_null_summary_leaves_its_manifest_unsummarised() -> None:
    fields = [_everything_optional(each) for each in LIST_FIELDS]
    fields[13]["type"][1]["items"] = ["null", fields[13]["type"][1]["items"]]
    (found,) = decode_manifest_list(
        write_manifest_list([list_row(partitions=[None])], fields), path="l"
    )
    assert found.partitions is None


# ------------------------------------------------------------------ partitions


def _partition(data: bytes, types: Any = TYPES[:2], spec: Any = SPEC[:2]) -> Any:
    return decode_manifest(
        data, ManifestFile("m"), path="m", form=PartitionForm(types, spec)
    ).partition[0]


def test_a_partition_shorter_than_its_spec_gives_what_it_has() -> None:
    data = write_manifest([entry(partition={"b_x2Fc": "t"})], PARTITION[1])
    assert _partition(data) == (UNSTORED, "t")
    without_ids = write_manifest(
        [entry(partition={"b_x2Fc": "t"})], partition_field("b_x2Fc", None, "string")
    )
    assert _partition(without_ids) == (UNSTORED, "t")
    assert _partition(write_manifest([entry(partition={})])) == (UNSTORED, UNSTORED)


def test_a_partition_longer_than_its_spec_gives_what_is_asked() -> None:
    row = entry(partition={"d": 1.5, "b_x2Fc": "t", "a": 7, "e": None})
    assert _partition(write_manifest([row], *reversed(PARTITION))) == (7, "t")


def test_without_ids_names_decide_before_the_order() -> None:
    swapped = (partition_field("b_x2Fc", None, "string"), partition_field("a", None, "long"))
    assert _partition(write_manifest([entry(partition={"a": 7, "b_x2Fc": "t"})], *swapped)) == (
        7,
        "t",
    )
    unnamed = (partition_field("x", None, "long"), partition_field("y", None, "string"))
    assert _partition(write_manifest([entry(partition={"x": 7, "y": "t"})], *unnamed)) == (7, "t")


def test_a_manifest_without_partitions_is_read() -> None:
    fields = [each for each in data_file_fields() if each["name"] != "partition"]
    assert _partition(write_avro(entry_schema(fields), [entry()])) == (UNSTORED, UNSTORED)


def test_optional_wraps_keep_the_pairs_of_other_writers() -> None:
    # Pairs the other way round, with a null value among them.
    fields = data_file_fields()
    pair: Node = {
        "type": "record",
        "name": "pair",
        "fields": [optional("value", 120, "long"), optional("key", 119, "int")],
    }
    position = next(i for i, each in enumerate(fields) if each["name"] == "value_counts")
    fields[position] = optional(
        "value_counts", 109, {"type": "array", "items": ["null", pair]}, null_first=False
    )
    row = entry()
    row["data_file"]["value_counts"] = [*(pairs({1: 5, 2: None}) or ()), None]
    data = write_avro(entry_schema(fields), [row])
    assert list(fastavro.reader(io.BytesIO(data)))
    found = decode_manifest(data, ManifestFile("m"), path="m", form=PartitionForm())
    assert dict(found.maps["value_counts"][0] or {}) == {1: 5}
