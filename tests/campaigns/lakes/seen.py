"""What a table is like, read from its files without icesql: counts, and the rows of snapshots."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import fastavro
from msgspec import Struct

from tests.campaigns.lakes.lake import GeneratedTable, Lake


class Seen(Struct, frozen=True):
    """Of the current snapshot; ``live_manifests`` have a live entry. ``snapshots`` are all."""

    data_files: int = 0
    delete_files: int = 0
    equality_delete_files: int = 0
    manifests: int = 0
    live_manifests: int = 0
    snapshots: tuple[int, ...] = ()
    refs: tuple[tuple[str, int], ...] = ()

    @property
    def files(self) -> int:
        """All of the current snapshot."""
        return self.data_files + self.delete_files

    @property
    def requests(self) -> int:
        """What planning and reading the table opens, beside its list."""
        return self.files + self.live_manifests


def seen(metadata_path: str) -> Seen:
    """Count by the manifests of a metadata file."""
    document = json.loads(Path(metadata_path.removeprefix("file://")).read_text())
    by_id = {each["snapshot-id"]: each for each in document.get("snapshots", [])}
    refs = {name: each["snapshot-id"] for name, each in document.get("refs", {}).items()}
    current = by_id.get(document.get("current-snapshot-id"))
    counts = [0, 0, 0]
    manifests = live = 0
    for manifest in _records(current["manifest-list"]) if current else ():
        manifests += 1
        found = [each for each in _records(manifest["manifest_path"]) if each["status"] != 2]
        live += bool(found)
        for each in found:
            counts[each["data_file"].get("content") or 0] += 1
    return Seen(
        counts[0], counts[1] + counts[2], counts[2], manifests, live,
        tuple(sorted(by_id)), tuple(sorted(refs.items())),
    )  # fmt: skip


def _records(path: str) -> list[dict[str, Any]]:
    with open(path.removeprefix("file://"), "rb") as file:
        return [each for each in fastavro.reader(file) if isinstance(each, dict)]


def metadata_of(connection: Any, table: GeneratedTable) -> str:
    """The path of the current metadata file."""
    return str(connection.catalog.load(table.identifier).metadata_location)


def rows_at(connection: Any, table: GeneratedTable, snapshot_id: int) -> list[Any]:
    """The rows of a snapshot, by the schema of that snapshot."""
    sql = f"SELECT * FROM {table.name} VERSION AS OF {snapshot_id}"
    return sorted(connection.execute(sql).fetchall(), key=repr)


def sizes(lake: Lake) -> dict[str, int]:
    """All files of the warehouse."""
    found = {}
    for folder, _, names in os.walk(lake.folder / "warehouse"):
        for name in names:
            path = os.path.join(folder, name)
            found[path] = os.path.getsize(path)
    return found
