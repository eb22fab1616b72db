"""One engine in one process, asked over stdin: a line in, a run, a line of JSON out.

    python paired_worker.py ENGINE    (the first line of stdin is a JSON object: catalog, tables, sql)

``tables`` gives each table's metadata file and data files. Connections and views are made before
the first run and kept, so a run is one statement with all its rows fetched. Needs only the
packages of its engine.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[], list[Any]]


def icesql_run(given: dict[str, Any]) -> Run:
    import icesql

    connection = icesql.connect(uri=given["catalog"])
    connection.execute(f"USE {given['namespace']}")
    return lambda: connection.execute(given["sql"]).fetchall()


def files_run(given: dict[str, Any]) -> Run:
    """The floor: DuckDB on the list of the table's Parquet files, no Iceberg at all."""
    import duckdb

    connection = duckdb.connect()
    for name, table in given["tables"].items():
        listed = ", ".join(f"'{path}'" for path in table["files"])
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}])")
    return lambda: connection.execute(given["sql"]).fetchall()


def duckdb_iceberg_run(given: dict[str, Any]) -> Run:
    """DuckDB with its iceberg and avro extensions from PyPI wheels."""
    import duckdb

    site = Path(duckdb.__file__).parents[1]
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for extension in ("avro", "iceberg"):
        (path,) = site.glob(f"duckdb_extension_{extension}/**/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    for name, table in given["tables"].items():
        connection.execute(f"CREATE VIEW {name} AS FROM iceberg_scan('{table['metadata']}')")
    return lambda: connection.execute(given["sql"]).fetchall()


def polars_run(given: dict[str, Any]) -> Run:
    import polars

    def run() -> list[Any]:
        frames = {
            name: polars.scan_iceberg(table["metadata"]) for name, table in given["tables"].items()
        }
        with polars.SQLContext(frames) as context:
            return context.execute(given["sql"]).collect().rows()

    return run


ENGINES: dict[str, Callable[[dict[str, Any]], Run]] = {
    "icesql": icesql_run,
    "files": files_run,
    "duckdb-iceberg": duckdb_iceberg_run,
    "polars": polars_run,
}


def digest(rows: list[Any]) -> str:
    """A short name of an answer, whatever the order of its rows; floats to six figures."""
    lines = sorted("|".join(_canonical(value) for value in row) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def _canonical(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value).partition(" 00:00:00")[0]


def main() -> None:
    run = ENGINES[sys.argv[1]](json.loads(sys.stdin.readline()))
    for _ in sys.stdin:
        before, started = time.process_time(), time.perf_counter()
        rows = run()
        wall, cpu = time.perf_counter() - started, time.process_time() - before
        told = {"wall": wall, "cpu": cpu, "rows": len(rows), "digest": digest(rows)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
