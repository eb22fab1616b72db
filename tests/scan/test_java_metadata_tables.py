"""Metadata tables are what Iceberg's Java library said of the same tables.

The tables have every kind of delete, 19 specs and variants. They were written by Iceberg 1.12 and
read by it with Spark 4.1; ``tests/campaigns/java.py`` compares those of other tables.
"""

from __future__ import annotations

import datetime as dt
import json
import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import icesql

RECORDED = Path(__file__).with_name("java_metadata_tables.tar.xz")


def canonical(value: Any) -> Any:
    """A value in a JSON form that both sides share; maps and structs by sorted keys."""
    match value:
        case dict():
            return {str(key): canonical(item) for key, item in sorted(value.items(), key=str)}
        case list() | tuple():
            return [canonical(item) for item in value]
        case bytes() | bytearray():
            return bytes(value).hex()
        case dt.datetime():
            if value.tzinfo is not None:
                value = value.astimezone(dt.UTC).replace(tzinfo=None)
            return value.isoformat(timespec="microseconds")
        case float():
            return repr(value)
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def differences(java: list[dict[str, Any]], own: list[dict[str, Any]]) -> Iterator[str]:
    """Describe what differs between the rows of one table, column by column."""
    if len(java) != len(own):
        yield f"{len(own)} rows, Java has {len(java)}"
        return
    both = [sorted(each, key=lambda row: json.dumps(row, sort_keys=True)) for each in (java, own)]
    for column in java[0] | own[0] if java else ():
        for theirs, ours in zip(*both, strict=True):
            if theirs.get(column, "no column") != ours.get(column, "no column"):
                yield f"{column}: {ours.get(column)!r}, Java has {theirs.get(column)!r}"[:400]
                break


def test_they_are_what_java_says(tmp_path) -> None:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    recorded = json.loads((tmp_path / "java.json").read_text(encoding="utf-8"))
    assert len(recorded) == 3 * 15
    wrong = []
    for (metadata, at), tables in groupby(recorded, lambda each: (each["metadata"], each["at"])):
        # The log ends with the file that was opened.
        here, there = json.dumps(str(tmp_path / at)), json.dumps(metadata)
        with icesql.connect() as connection:
            connection.register_table("t", tmp_path / at)
            for each in tables:
                cursor = connection.execute(f"SELECT * FROM t.{each['table']}")
                names = [column[0] for column in cursor.description]
                rows = canonical(cursor.arrow().to_pylist(maps_as_pydicts="strict"))
                assert names == each["columns"]
                rows = json.loads(json.dumps(rows).replace(here, there))
                found = differences(each["rows"], rows)
                wrong += [f"{metadata} {each['table']}: {problem}" for problem in found]
    assert not wrong
