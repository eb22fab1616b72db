"""A SQLite catalog of Iceberg tables that a campaign writes anew whenever their rows change."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from tests.writer.table import TableWriter
from tests.writer.types import arrow_schema

# A column's bounds are counted by the slow writer of the tests up to this many rows.
_MOST_ROWS_WITH_BOUNDS = 3_000
_FILES = 3
_TABLES = """
CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT,
  metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT,
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name TEXT, namespace TEXT, property_key TEXT,
  property_value TEXT);
"""


class IcebergCatalog:
    """The catalog ``catalog.db`` in ``folder``, by the name of ``name``."""

    def __init__(self, folder: Path, name: str = "memory", namespace: str = "main") -> None:
        self.folder, self.name, self._number = folder, name, 0
        with closing(sqlite3.connect(folder / "catalog.db")) as file:
            file.executescript(_TABLES)
        self._namespace(namespace)

    @property
    def uri(self) -> str:
        """What ``icesql.connect(uri=…)`` takes."""
        return f"sqlite:///{self.folder}/catalog.db"

    def write(
        self, namespace: str, name: str, rows: pa.Table, fields: list[dict[str, Any]]
    ) -> None:
        """Let ``namespace.name`` be a new table of ``rows``, whose columns are ``fields`` in order.

        A UUID may come as its text.
        """
        self._number += 1
        fine = "_ns" in json.dumps([each["type"] for each in fields])
        table = TableWriter(self.folder / f"t{self._number}", fields, version=3 if fine else 2)
        wanted = arrow_schema(fields)
        stored = pa.Table.from_arrays(
            [
                _as(column.combine_chunks(), to)
                for column, to in zip(rows.columns, wanted.types, strict=True)
            ],
            schema=wanted,
        )
        step = max(1, -(-stored.num_rows // _FILES))
        files = []
        for at in range(0, stored.num_rows, step):
            part = stored.slice(at, step)
            try:
                files.append(table.data_file(part, stats=stored.num_rows <= _MOST_ROWS_WITH_BOUNDS))
            except (OverflowError, ValueError, TypeError):
                # A moment that Python has not: without bounds.
                files.append(table.data_file(part, stats=False))
        if files:
            table.commit(files)
        self._namespace(namespace)
        self._run(
            "INSERT OR REPLACE INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, 'TABLE')",
            self.name, namespace, name, str(table.metadata_path),
        )  # fmt: skip

    def drop(self, namespace: str, name: str) -> None:
        """Forget a table, if there is one of that name."""
        self._run(
            "DELETE FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
            namespace, name,
        )  # fmt: skip

    def _namespace(self, name: str) -> None:
        self._run(
            "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
            self.name, name,
        )  # fmt: skip

    def _run(self, sql: str, *values: str) -> None:
        with closing(sqlite3.connect(self.folder / "catalog.db", isolation_level=None)) as file:
            file.execute("PRAGMA synchronous = OFF")
            file.execute(sql, values)

    def remove(self) -> None:
        """Delete every file of the catalog."""
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_binary(wanted):
        values = [None if text is None else UUID(str(text)).bytes for text in column.to_pylist()]
        return pa.array(values, wanted)
    return column.cast(wanted)
