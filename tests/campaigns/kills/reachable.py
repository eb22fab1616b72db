"""What a table needs, by the specification and fastavro alone: nothing of icesql is asked."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import fastavro

_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")


def local(path: str) -> str:
    """The place of a path that metadata names."""
    return (
        path.removeprefix("file://") if path.startswith("file:///") else path.removeprefix("file:")
    )


def of_folder(table: Path) -> str:
    """The current metadata file of a table of a folder: its highest version."""
    found = {}
    for each in (table / "metadata").iterdir():
        if (match := _VERSION.fullmatch(each.name)) is not None:
            found[int(match[1])] = str(each)
    return found[max(found)]


def of_sqlite(file: Path, name: str) -> str:
    """That of a table of a SQLite catalog."""
    with closing(sqlite3.connect(file)) as database:
        row = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (name,)
        ).fetchone()
    return local(row[0])


def needed(metadata_file: str) -> set[str]:
    """Every file that the table needs, itself included; FileNotFoundError for a list that is gone."""
    with (gzip.open if metadata_file.endswith(".gz.metadata.json") else open)(
        metadata_file
    ) as file:
        document: dict[str, Any] = json.load(file)
    found = {metadata_file} | {local(each["metadata-file"]) for each in document["metadata-log"]}
    for kind in ("statistics", "partition-statistics"):
        found |= {local(each["statistics-path"]) for each in document.get(kind) or ()}
    manifests: set[str] = set()
    for snapshot in document["snapshots"]:
        listed = local(snapshot["manifest-list"])
        found.add(listed)
        manifests |= {local(each["manifest_path"]) for each in _rows(listed)}
    for manifest in manifests:
        found |= {
            local(each["data_file"]["file_path"]) for each in _rows(manifest) if each["status"] != 2
        }
    return found | manifests


def _rows(path: str) -> list[Any]:
    with open(path, "rb") as file:
        return [*fastavro.reader(file)]
