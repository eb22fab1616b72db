"""Views as other systems write them to a catalog."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def metadata(
    representations: Mapping[str, str],
    columns: Mapping[str, Any],
    namespace: Sequence[str] = ("shop",),
    *,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Metadata of the view spec; ``representations`` are SQL by dialect."""
    fields = [
        {"id": place, "name": name, "required": False, "type": kind}
        for place, (name, kind) in enumerate(columns.items(), start=1)
    ]
    version: dict[str, Any] = {
        "version-id": 2,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 1,
        "summary": {"engine-name": "spark"},
        "representations": [
            {"type": "sql", "sql": sql, "dialect": dialect}
            for dialect, sql in representations.items()
        ],
        "default-namespace": list(namespace),
    }
    if catalog is not None:
        version["default-catalog"] = catalog
    old = {**version, "version-id": 1, "schema-id": 0, "representations": []}
    return {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": "file:///nowhere",
        "current-version-id": 2,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": []},
            {"type": "struct", "schema-id": 1, "fields": fields},
        ],
        "versions": [old, version],
        "version-log": [],
        "properties": dict(properties or {}),
    }


def write(warehouse: Path, name: str, view: Mapping[str, Any]) -> None:
    """Add a view to the namespace shop of the SQLite catalog of ``warehouse``."""
    file = warehouse / f"{name}-{uuid.uuid4()}.metadata.json"
    file.write_text(json.dumps(view))
    with sqlite3.connect(warehouse / "catalog.db") as database:
        known = {row[1] for row in database.execute("PRAGMA table_info(iceberg_tables)")}
        if "iceberg_type" not in known:
            database.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
        (catalog,) = database.execute("SELECT catalog_name FROM iceberg_tables").fetchone()
        place = (catalog, "shop", name)
        database.execute(
            "DELETE FROM iceberg_tables WHERE (catalog_name, table_namespace, table_name) "
            "= (?, ?, ?)",
            place,
        )
        database.execute(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
            "metadata_location, iceberg_type) VALUES (?, ?, ?, ?, 'VIEW')",
            (*place, str(file)),
        )
    database.close()
