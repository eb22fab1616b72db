"""One engine in one process: runs a query some times and prints what it took as JSON.

    python query_worker.py ENGINE WAREHOUSE QUERY RUNS

The first run includes whatever the engine loads then; imports are not counted. Every run opens the
tables and plans again. Needs only the packages of its engine.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from tpch import PROJECTIONS, QUERIES, TABLES  # type: ignore[import-not-found]

Run = Callable[[str], list[Any]]


def tables_of(query: str) -> list[str]:
    return [table for table, queries in TABLES.items() if query in queries]


def metadata_files(warehouse: Path) -> dict[str, str]:
    with sqlite3.connect(warehouse / "catalog.db") as catalog:
        rows = catalog.execute("SELECT table_name, metadata_location FROM iceberg_tables")
        return {name: location.removeprefix("file://") for name, location in rows}


def icesql_runner(warehouse: Path) -> Run:
    import icesql

    connection = icesql.connect(uri=f"sqlite:///{warehouse}/catalog.db")
    connection.execute("USE tpch")
    return lambda query: connection.execute(QUERIES[query]).fetchall()


def files_runner(warehouse: Path) -> Run:
    """The floor: DuckDB directly on the list of Parquet files, no Iceberg at all."""
    import duckdb

    files = {
        name: sorted(map(str, Path(location).parents[1].glob("data/*.parquet")))
        for name, location in metadata_files(warehouse).items()
    }

    def run(query: str) -> list[Any]:
        connection = duckdb.connect()
        for table in tables_of(query):
            listed = ", ".join(f"'{path}'" for path in files[table])
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet([{listed}])")
        rows: list[Any] = connection.execute(QUERIES[query]).fetchall()
        return rows

    return run


def pyiceberg_runner(warehouse: Path) -> Run:
    """PyIceberg to Arrow with projection and filter by hand, DuckDB over the Arrow tables."""
    import duckdb
    from pyiceberg.catalog.sql import SqlCatalog

    def run(query: str) -> list[Any]:
        catalog = SqlCatalog("tpch", uri=f"sqlite:///{warehouse}/catalog.db")
        connection = duckdb.connect()
        for table, (columns, row_filter) in PROJECTIONS[query].items():
            scan = catalog.load_table(f"tpch.{table}").scan(
                row_filter=row_filter or "true", selected_fields=columns
            )
            connection.register(table, scan.to_arrow())
        rows: list[Any] = connection.execute(QUERIES[query]).fetchall()
        catalog.close()
        return rows

    return run


def polars_runner(warehouse: Path) -> Run:
    import polars

    def run(query: str) -> list[Any]:
        locations = metadata_files(warehouse)
        frames = {table: polars.scan_iceberg(locations[table]) for table in tables_of(query)}
        with polars.SQLContext(frames) as context:
            return context.execute(QUERIES[query]).collect().rows()

    return run


def duckdb_iceberg_runner(warehouse: Path) -> Run:
    """DuckDB 1.5.5 with its iceberg and avro extensions from PyPI wheels."""
    import duckdb

    site = Path(duckdb.__file__).parents[1]

    def run(query: str) -> list[Any]:
        connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for extension in ("avro", "iceberg"):
            (path,) = site.glob(f"duckdb_extension_{extension}/**/*.duckdb_extension")
            connection.execute(f"LOAD '{path}'")
        locations = metadata_files(warehouse)
        for table in tables_of(query):
            connection.execute(f"CREATE VIEW {table} AS FROM iceberg_scan('{locations[table]}')")
        rows: list[Any] = connection.execute(QUERIES[query]).fetchall()
        return rows

    return run


ENGINES: dict[str, Callable[[Path], Run]] = {
    "icesql": icesql_runner,
    "files": files_runner,
    "pyiceberg": pyiceberg_runner,
    "polars": polars_runner,
    "duckdb-iceberg": duckdb_iceberg_runner,
}


def digest(rows: list[Any]) -> str:
    """A short name of an answer, so that engines can be compared; floats to six figures."""
    text = "\n".join("|".join(_canonical(value) for value in row) for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(value: Any) -> str:
    # Decimal averages and sums differ in type between engines, not in value.
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value).partition(" 00:00:00")[0]


def main() -> None:
    engine, warehouse, query, runs = sys.argv[1:]
    run = ENGINES[engine](Path(warehouse))
    seconds, rows = [], []
    for _ in range(int(runs)):
        started = time.perf_counter()
        rows = run(query)
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "rows": len(rows), "digest": digest(rows)}))


if __name__ == "__main__":
    main()
