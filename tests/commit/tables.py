"""Small tables of both embedded catalogs for the tests of commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.sqlite import SqliteCatalog
from icesql.catalog.table import Table
from icesql.commit.create import create_table, stage_table
from icesql.context import QueryContext
from icesql.iceberg import types as t
from icesql.iceberg.evolution.spec_changes import PartitionRequest
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import Schema
from icesql.scan.manifest_reader import ManifestReader

SCHEMA = Schema((t.NestedField(1, "id", t.LONG), t.NestedField(2, "p", t.STRING)))
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20"}


def directory(folder: Path) -> DirectoryCatalog:
    (folder / "wh").mkdir(exist_ok=True)
    return DirectoryCatalog(str(folder / "wh"))


def sqlite(folder: Path) -> SqliteCatalog:
    from pyiceberg.catalog.sql import SqlCatalog

    theirs = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    theirs.create_namespace("ns")
    theirs.close()
    return SqliteCatalog(str(folder / "c.db"), "c", properties={"warehouse": str(folder / "wh")})


CATALOGS = {"directory": directory, "sqlite": sqlite}


class Overtaken:
    """A catalog in which others commit between a writer's load of the table and its swap.

    Each action is done once, before one swap.
    """

    def __init__(self, catalog: Any, *actions: Callable[[], Any]) -> None:
        self.catalog, self.actions, self.swaps = catalog, [*actions], 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.catalog, name)

    def swap(self, identifier: Any, base: Any, change: Any) -> Any:
        self.swaps += 1
        if self.actions:
            self.actions.pop(0)()
        return self.catalog.swap(identifier, base, change)


def create(
    catalog: Any, *, version: int = 2, partitioned: bool = False, name: str = "t", **properties: str
) -> Table:
    staged = stage_table(
        catalog,
        ("ns", name),
        SCHEMA,
        partitioning=[PartitionRequest("p")] if partitioned else [],
        properties={**FAST, "format-version": str(version), **properties},
    )
    return create_table(catalog, staged).table


def fake(
    name: str, *, partition: tuple[Any, ...] = (), rows: int = 1, size: int = 10, **others: Any
) -> DataFile:
    """A data file that is never read."""
    return DataFile(
        FileContent.DATA, f"/nowhere/{name}.parquet", "PARQUET", others.pop("spec_id", 0), partition,
        rows, size, **others,
    )  # fmt: skip


def fake_deletes(name: str, *, vector_of: str | None = None, **others: Any) -> DataFile:
    """A position delete file, or a deletion vector, that is never read."""
    if vector_of is not None:
        others = {
            "content_offset": 4, "content_size_in_bytes": 46, "referenced_data_file": vector_of,
            **others,
        }  # fmt: skip
    return DataFile(
        others.pop("content", FileContent.POSITION_DELETES), f"/nowhere/{name}",
        "PARQUET" if vector_of is None else "PUFFIN", 0, others.pop("partition", ()),
        others.pop("rows", 1), 10, **others,
    )  # fmt: skip


def written(table: Table, name: str, rows: list[tuple[int, str | None]], partition=()) -> DataFile:
    """A data file of rows (id, p)."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("p", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    place = f"{table.metadata.location}/data/{name}.parquet"
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows])]
    pq.write_table(pa.table(columns, schema=schema), place)
    return DataFile(
        FileContent.DATA, place, "PARQUET", table.metadata.default_spec_id, partition, len(rows),
        Path(place).stat().st_size,
    )  # fmt: skip


def head(table: Table, branch: str = "main") -> Snapshot:
    return table.metadata.snapshots[table.metadata.refs[branch].snapshot_id]


def manifests(table: Table, snapshot: Snapshot | None = None) -> tuple[ManifestFile, ...]:
    return ManifestReader(table, QueryContext()).manifests_of(snapshot or head(table))


def entries(table: Table, snapshot: Snapshot | None = None) -> list[ManifestEntries]:
    """The entries of each manifest of a snapshot."""
    reader = ManifestReader(table, QueryContext())
    return [found for _, found in reader.entries_of(manifests(table, snapshot))]


def told(table: Table, snapshot: Snapshot | None = None) -> list[list[tuple[str, int, int]]]:
    """(file, status, sequence number) of each entry of each manifest."""
    return [
        [
            (path.rpartition("/")[2].removesuffix(".parquet"), status, number)
            for path, status, number in zip(
                each.path, each.status, each.sequence_number, strict=True
            )
        ]
        for each in entries(table, snapshot)
    ]


def live(table: Table, snapshot: Snapshot | None = None) -> set[str]:
    return {name for each in told(table, snapshot) for name, status, _ in each if status != 2}


def files_on_disk(table: Table, pattern: str) -> set[str]:
    from icesql.storage.open import local_spellings

    folder = Path(local_spellings(table.metadata.location)[0]) / "metadata"
    return {each.name for each in folder.glob(pattern)}
