"""Table folders as small as a metadata file allows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def metadata(location: str) -> dict[str, Any]:
    """The metadata of an empty v2 table with one column."""
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": None,
        "snapshots": [],
        "refs": {},
    }


def write(path: Path, **changes: Any) -> str:
    """Write one metadata file, some members changed, gzipped if its name says so; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps({**metadata(str(path.parent.parent)), **changes}).encode()
    path.write_bytes(gzip.compress(data) if ".gz" in path.name else data)
    return str(path)
