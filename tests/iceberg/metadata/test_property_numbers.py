"""Numbers of properties and metadata beyond what they can be are refused, and never a bug."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import DataError, NotSupportedError, ProgrammingError
from icesql.iceberg.metadata.json_fields import number_property, whole_number

TEXTS = ["9" * 400, "9" * 5000, str(2**63), "-1", "NaN", "1e308", "text", "", "²", "1_0"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_number_of_64_bits(text: str) -> None:
    assert whole_number(text) is None
    with pytest.raises(
        ProgrammingError, match=r"property p is .{0,50}; it has to be a number from"
    ):
        number_property({"p": text}, "p", 1)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), (" 7 ", 7), ("+7", 7), (str(2**63 - 1), 2**63 - 1)]
)
def test_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number == number_property({"p": text}, "p", 1)
    assert number_property({}, "p", 1) == 1


def edited(folder: Path, edit: Any) -> None:
    """Change the newest metadata of s.a as a stranger does."""
    files = (folder / "s/a/metadata").glob("*.metadata.json")
    newest = max(files, key=lambda each: each.stat().st_mtime_ns)
    document = json.loads(newest.read_text())
    edit(document)
    newest.write_text(json.dumps(document))


PROPERTIES = [
    "write.target-file-size-bytes", "commit.manifest.target-size-bytes",
    "commit.manifest.min-count-to-merge", "commit.retry.min-wait-ms",
    "history.expire.max-snapshot-age-ms", "write.delete.target-file-size-bytes",
    "read.split.target-size", "write.parquet.row-group-size-bytes",
    "write.parquet.compression-level", "write.metadata.previous-versions-max",
]  # fmt: skip


def property_edit(name: str, text: str) -> Any:
    return lambda document: document["properties"].update({name: text})


def number_edit(value: Any) -> Any:
    def edit(document: dict[str, Any]) -> None:
        document["last-updated-ms"] = value
        for each in (*document["snapshots"], *document["snapshot-log"], *document["metadata-log"]):
            each["timestamp-ms"] = value

    return edit


EDITS = {
    **{f"{name} {text[:9]}": property_edit(name, text)
       for name in PROPERTIES for text in (TEXTS[0], TEXTS[3], str(2**63 - 1))},
    **{f"times {value:.3g}": number_edit(value) for value in (2**62, -(2**62), 2**63 - 1)},
    "times 1e308": number_edit(1e308),
    "times 10**400": number_edit(10**400),
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    with icesql.connect(warehouse=str(folder)) as con:
        con.execute("CREATE SCHEMA s")
        for name in "ab":
            con.execute(f"CREATE TABLE s.{name} (a BIGINT)")
            for number in range(6):
                con.execute(f"INSERT INTO s.{name} VALUES ({number})")
    return folder


@pytest.mark.parametrize("name", EDITS)
def test_a_number_of_one_table_stops_no_other(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    place = tmp_path / "wh"
    shutil.copytree(built, place)
    for each in place.rglob("*.metadata.json"):
        each.write_text(each.read_text().replace(str(built), str(place)))
    edited(place, EDITS[name])
    with icesql.connect(warehouse=str(place)) as con:
        done = con.maintain(actions=["compact", "manifests", "expire"])
        said = {each.table: each for each in done.tables}
        assert said["s.b"].status == "done"
        notes = [said["s.a"].note, *(each.note for each in said["s.a"].actions)]
        assert not any("bug in icesql" in each for each in notes), notes
        assert all(not each.error or "bug" not in each.error for each in con.doctor().tables)
        for sql in ("SHOW SNAPSHOTS FROM s.a", "SELECT * FROM s.a.history", "SELECT * FROM s.a",
                    "INSERT INTO s.a VALUES (9)"):  # fmt: skip
            with contextlib.suppress(ProgrammingError, NotSupportedError, DataError):
                con.execute(sql).fetchall()
