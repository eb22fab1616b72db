"""The files that a table needs and has, by the specification and fastavro alone, without icesql."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import fastavro


def local(path: str) -> str:
    """The local path for a path in metadata."""
    return path.removeprefix("file://" if path.startswith("file:///") else "file:")


def needed(place: str, document: dict[str, Any]) -> set[str]:
    """Every file that a table needs, its metadata file at ``place`` included."""
    found = {place, *(local(each["metadata-file"]) for each in document["metadata-log"])}
    for kind in ("statistics", "partition-statistics"):
        found |= {local(each["statistics-path"]) for each in document.get(kind) or ()}
    lists = {local(each["manifest-list"]) for each in document["snapshots"]}
    manifests = {local(each["manifest_path"]) for listed in lists for each in records(listed)}
    data = {local(entry["data_file"]["file_path"]) for each in manifests for entry in live(each)}
    return found | lists | manifests | data


def there(document: dict[str, Any]) -> set[str]:
    """Every file in the folder of a table, except for the version hint of a folder catalog."""
    found = Path(local(document["location"])).rglob("*")
    return {str(each) for each in found if each.is_file() and each.name != "version-hint.text"}


def counts(document: dict[str, Any]) -> Counter[str]:
    """Counts of the current snapshot, by the names that maintenance uses."""
    found: Counter[str] = Counter(snapshots=len(document["snapshots"]))
    head = document.get("current-snapshot-id")
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] != head:
            continue
        for manifest in records(local(snapshot["manifest-list"])):
            entries = live(local(manifest["manifest_path"]))
            found.update(manifests=1, live_manifests=bool(entries))
            for each in entries:
                content = each["data_file"].get("content") or 0
                rows = each["data_file"]["record_count"]
                found.update(
                    data_files=content == 0, delete_files=content > 0,
                    equality_delete_files=content == 2, records=rows * (content == 0),
                    position_deletes=rows * (content == 1),
                )  # fmt: skip
    return found


def live(manifest: str) -> list[Any]:
    """The entries of a manifest whose file was not removed."""
    return [each for each in records(manifest) if each["status"] != 2]


def records(path: str) -> list[Any]:
    """All records of an Avro file."""
    with open(path, "rb") as file:
        return [*fastavro.reader(file)]
