"""TPC-H warm, all 22 queries: icesql against DuckDB on the bare files, its extension, and Polars.

    python tests/benchmarks/tpch_all.py CACHE [--scale 1] [--rounds 7] [--queries 1,6] [--engines …]

CACHE keeps the data and the environments of the peers. Polars is asked the queries that its SQL
takes. See ``paired`` for how it is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import paired  # type: ignore[import-not-found]
from tpcds import warehouse  # type: ignore[import-not-found]
from tpch import QUERIES  # type: ignore[import-not-found]

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
ENGINES = ("icesql", "files", "duckdb-iceberg", "polars")
GOALS = {"files": 1.05, "duckdb-iceberg": 0.85, "polars": 1.0}
# Polars' SQL has no comma joins with conditions over both sides; these are written with JOIN.
FOR_POLARS = ("3", "5", "6", "9", "18")


def tables_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Metadata file and data files of every table below a folder's ``catalog.db``."""
    with sqlite3.connect(folder / "catalog.db") as catalog:
        rows = catalog.execute("SELECT table_name, metadata_location FROM iceberg_tables")
        places = {name: Path(where.removeprefix("file://")) for name, where in rows}
    return {
        name: {
            "metadata": str(place),
            "files": sorted(map(str, place.parents[1].glob("data/**/*.parquet"))),
        }
        for name, place in places.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--queries", default="")
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    cache = options.cache.resolve()
    folder, queries = warehouse(cache, "tpch", options.scale)
    wanted = [each for each in options.queries.split(",") if each] or sorted(queries, key=int)
    engines = options.engines.split(",")
    tables, places = tables_of(folder), paired.pythons(cache, engines)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, scale {options.scale:g}")
    table = paired.Table(engines, GOALS)
    for query in wanted:
        sql = queries[query].rstrip().rstrip(";")
        used = {name: tables[name] for name in TABLES if re.search(rf"\b{name}\b", sql)}
        given = {
            "catalog": f"sqlite:///{folder}/catalog.db",
            "namespace": "ds",
            "tables": used,
            "sql": sql,
        }
        givens = {name: given for name in engines if name != "polars"}
        if "polars" in engines and query in FOR_POLARS:
            givens["polars"] = {**given, "sql": QUERIES[f"q{query}"]}
        table.line(f"q{query}", paired.measure(givens, places, options.rounds))
    table.end()


if __name__ == "__main__":
    main()
