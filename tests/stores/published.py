"""Iceberg tables written on this machine, published as a bucket: their paths lead to the store."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import fastavro


def new_table(folder: Path, name: str, schema: Any, **options: Any) -> Any:
    """A new table of PyIceberg at ``folder``/lake/``name``, yet with paths of this machine."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(
        "made", uri=f"sqlite:///{folder}/made.db", warehouse=f"file://{folder}/lake"
    )
    catalog.create_namespace_if_not_exists("made")
    location = f"file://{folder}/lake/{name}"
    table = catalog.create_table(f"made.{name}", schema=schema, location=location, **options)
    catalog.close()
    return table


def publish(folder: Path, table: Any, name: str, root: str = "s3://lake/") -> str:
    """Write a table's metadata anew as ``root````name``, and enter it in ``folder``/catalog.db.

    Returns where its metadata is now.
    """
    metadata = folder / "lake" / name / "metadata"
    before = f"file://{folder}/lake/"

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(each) for key, each in value.items()}
        if isinstance(value, list):
            return [moved(each) for each in value]
        return value.replace(before, root) if isinstance(value, str) else value

    def length(path: str) -> int:
        return (folder / "lake" / path.removeprefix(root)).stat().st_size

    manifests = [path for path in metadata.glob("*.avro") if not path.name.startswith("snap-")]
    for path in manifests:
        _rewrite(path, moved)
    for path in metadata.glob("snap-*.avro"):
        _rewrite(path, moved, lambda row: row | {"manifest_length": length(row["manifest_path"])})
    location = Path(table.metadata_location.removeprefix("file://"))
    location.write_text(json.dumps(moved(json.loads(location.read_text()))))
    here = f"{root}{name}/metadata/{location.name}"
    (folder / f"{name}.location").write_text(here)
    with sqlite3.connect(folder / "catalog.db") as catalog:
        catalog.execute(
            "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name TEXT, table_namespace TEXT, "
            "table_name TEXT, metadata_location TEXT, previous_metadata_location TEXT)"
        )
        catalog.execute(
            "INSERT INTO iceberg_tables VALUES ('lake', 'lake', ?, ?, NULL)", (name, here)
        )
    catalog.close()
    return here


def _rewrite(path: Path, moved: Any, change: Any = lambda row: row) -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows, schema = [change(moved(row)) for row in reader], reader.writer_schema
        extra = {key: value for key, value in reader.metadata.items() if key != "avro.schema"}
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate", metadata=extra)


def thousand(folder: Path, root: str) -> str:
    """A table of the numbers below 1000 in the bucket below ``folder``; where its metadata is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    table = new_table(folder, "t", rows.schema)
    path = folder / "lake" / "t" / "data" / "00000-0000000000000000.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows.cast(table.schema().as_arrow()), path)
    table.add_files([f"file://{path}"])
    return publish(folder, table, "t", root)
