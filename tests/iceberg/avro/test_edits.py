"""Editing Avro changes the requested fields, and no other byte of a record."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile, read_avro_file
from icesql.iceberg.avro.edits import edited, find_fields
from icesql.iceberg.avro.schema import OddSchema, parse_avro_schema

SCHEMA = json.loads(Path(__file__).with_name("edited.avsc").read_text())
RECORDS = [
    {
        "a": text, "n": None, "flag": number % 2 == 0, "i": number * 10**12, "f": 0.5,
        "d": None if number % 3 else 2.5, "x": b"abc", "e": "C",
        "m": {"k" * number: b"\x80" * number},
        "pairs": None if number == 1 else [{"key": n, "value": b"v" * n} for n in range(number)],
        "last": "end",
    }
    for number, text in enumerate((None, "", "ü", "long " * 40))
]  # fmt: skip


def written(codec: str = "deflate", interval: int = 60) -> AvroFile:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, RECORDS, codec=codec, metadata={"k": "v"}, sync_interval=interval)
    return read_avro_file(out.getvalue(), "f")


def node() -> Any:
    return parse_avro_schema(json.dumps(SCHEMA).encode())


def read(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("interval", [1, 60, 10**6])
def test_what_is_not_changed_stays(codec: str, interval: int) -> None:
    file = written(codec, interval)
    for wanted in ((), (1, 2, 3, 4)):
        data = edited(file, find_fields(node(), wanted), lambda found: {})
        again = read_avro_file(data, "f")
        assert again.data == file.data
        assert [each[:2] for each in again.blocks] == [each[:2] for each in file.blocks]
        assert {**again.metadata, "avro.codec": b""} == {**file.metadata, "avro.codec": b""}
        assert read(data) == RECORDS
        assert edited(file, find_fields(node(), wanted), lambda found: {}) == data


def test_fields_change() -> None:
    def edit(found: Any) -> dict[int, Any]:
        assert set(found) == {1, 2, 3, 4}
        pairs = found[3].value
        return {
            1: None if found[1].value is None else found[1].value + "!",
            2: -found[2].value,
            3: None if pairs is None else [{**each, "value": b"!"} for each in pairs],
            4: "END" * 100,
        }

    data = edited(written(), find_fields(node(), (1, 2, 3, 4)), edit)
    assert read(data) == [
        {
            **each,
            "a": None if each["a"] is None else each["a"] + "!",
            "i": -each["i"],
            "pairs": each["pairs"] and [{**pair, "value": b"!"} for pair in each["pairs"]],
            "last": "END" * 100,
        }
        for each in RECORDS
    ]


def test_every_cut_is_told() -> None:
    file = written("null", 10**6)
    ((count, end, _),) = file.blocks
    for cut in range(end):
        broken = replace(file, data=file.data[:cut], blocks=((count, cut, 0),))
        with pytest.raises(CorruptFileError, match="f"):
            edited(broken, find_fields(node(), (4,)), lambda found: {})


def test_arrays_without_bytes_are_refused() -> None:
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "a", "type": {"type": "array", "items": "null"}}]}  # fmt: skip
    with pytest.raises(OddSchema):
        find_fields(parse_avro_schema(json.dumps(schema).encode()), ())
