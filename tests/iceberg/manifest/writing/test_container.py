"""Editing an Avro file changes the requested fields, and no others."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest
from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile, read_avro_file
from icesql.iceberg.avro.schema import OddSchema, parse_avro_schema
from icesql.iceberg.manifest.avro_files import edited

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


def read(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def keep(record: Any) -> None:
    """Change nothing."""


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("interval", [1, 60, 10**6])
def test_what_is_not_changed_stays(codec: str, interval: int) -> None:
    file = written(codec, interval)
    data = edited(file, keep)
    again = read_avro_file(data, "f")
    assert again.metadata["k"] == b"v"
    assert parse_avro_schema(again.schema) == parse_avro_schema(file.schema)
    assert (again.metadata["avro.codec"] == b"null") == (codec == "null")
    assert read(data) == RECORDS
    assert edited(file, keep) == data


def test_fields_change() -> None:
    def edit(record: Any) -> None:
        record["i"] = -record["i"]
        record["last"] = "END" * 100
        for each in record["pairs"] or ():
            each["value"] = b"!"

    assert read(edited(written(), edit)) == [
        {
            **each,
            "i": -each["i"],
            "pairs": each["pairs"] and [{**pair, "value": b"!"} for pair in each["pairs"]],
            "last": "END" * 100,
        }
        for each in RECORDS
    ]


def test_every_cut_is_an_error() -> None:
    file = written("null", 10**6)
    ((count, end, _),) = file.blocks
    for cut in range(end):
        broken = replace(file, data=file.data[:cut], blocks=((count, cut, 0),))
        with pytest.raises(CorruptFileError, match="f"):
            edited(broken, keep)


def test_wrong_bytes_are_an_error_or_other_values() -> None:
    file = written("null", 10**6)
    for place in range(len(file.data)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            data = bytearray(file.data)
            data[place] = byte
            with suppress(CorruptFileError):
                edited(replace(file, data=bytes(data)), keep)


def test_arrays_without_bytes_are_refused() -> None:
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "a", "type": {"type": "array", "items": "null"}}]}  # fmt: skip
    file = replace(written(), metadata={"avro.schema": json.dumps(schema).encode()})
    with pytest.raises(OddSchema):
        edited(file, keep)
