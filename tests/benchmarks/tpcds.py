"""TPC-DS or TPC-H, held against Spark or DuckDB: which queries give the same rows, which do not.

    python tests/benchmarks/tpcds.py CACHE [--benchmark tpch] [--scale 0.1] [--queries 1,2,3]
        [--against spark|duckdb]

The local engine is held against the Spark engine over the same tables, or against DuckDB over the
bare files. The last line but one is the time of all queries on either side.

Data and queries are made by the PyPI wheel duckdb-extension-tpcds (-tpch) in an environment of its
own below CACHE. Rows compare as multisets, floats within 1e-9; under LIMIT with ties the engines may choose
other rows, which shows as a difference of the last rows alone.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from tpch import environment  # type: ignore[import-not-found]

MAKE = """
import json, os, sys
import duckdb
folder, scale, name = sys.argv[1], float(sys.argv[2]), sys.argv[3]
con = duckdb.connect()
import importlib
try:
    con.execute(f"LOAD {name}")
except duckdb.Error:
    module = importlib.import_module(f"duckdb_extension_{name}")
    found = [os.path.join(root, name) for root, _, names in os.walk(os.path.dirname(module.__file__))
             for name in names if name.endswith(".duckdb_extension")]
    con.execute(f"LOAD '{found[0]}'")
con.execute(f"CALL {'dsdgen' if name == 'tpcds' else 'dbgen'}(sf={scale})")
for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
    con.execute(f"COPY {table} TO '{folder}/{table}.parquet' (FORMAT parquet)")
queries = dict(con.execute(f"SELECT query_nr, query FROM {name}_queries()").fetchall())
json.dump(queries, open(f"{folder}/queries.json", "w"))
"""


def warehouse(cache: Path, name: str, scale: float) -> tuple[Path, dict[str, str]]:
    """The folder of the tables in Iceberg and the queries by number, made once."""
    raw, folder = cache / f"{name}-raw-{scale:g}", cache / f"{name}-{scale:g}"
    if not (raw / "queries.json").exists():
        raw.mkdir(parents=True, exist_ok=True)
        python = environment(
            cache / f"env-{name}", "duckdb==1.5.5", f"duckdb-extension-{name}==1.5.5"
        )
        subprocess.run([python, "-c", MAKE, str(raw), str(scale), name], check=True)
    if not (folder / "done").exists():
        _write(folder, raw)
        (folder / "done").touch()
    return folder, json.loads((raw / "queries.json").read_text())


def _write(folder: Path, raw: Path) -> None:
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "catalog.db").unlink(missing_ok=True)
    catalog = SqlCatalog("ds", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("ds")
    for path in sorted(raw.glob("*.parquet")):
        rows = pq.read_table(path)
        catalog.create_table(f"ds.{path.stem}", schema=rows.schema).append(rows)


def comparable(value: Any) -> Any:
    """A value whose equals compare equal across engines: floats to nine digits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.9g}"
    return value


def answer(connection: Any, sql: str, seconds: float) -> tuple[str, Any]:
    """("rows", multiset), ("refused", why) or ("error", why)."""
    import icesql

    cursor = connection.cursor()
    timer = threading.Timer(seconds, cursor.cancel)
    timer.start()
    try:
        rows = cursor.execute(sql).fetchall()
        return "rows", Counter(tuple(map(comparable, row)) for row in rows)
    except icesql.NotSupportedError as error:
        return "refused", str(error)
    except icesql.Error as error:
        return "error", f"{type(error).__name__}: {error}"
    finally:
        timer.cancel()
        cursor.close()


class Bare:
    """DuckDB over the bare files, with the part of a connection that ``answer`` asks."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 2})
        for path in sorted(folder.glob("*.parquet")):
            self._connection.execute(f"CREATE VIEW {path.stem} AS FROM read_parquet('{path}')")

    def cursor(self) -> Bare:
        """Itself: one query runs at a time."""
        return self

    def execute(self, sql: str) -> Any:
        """The result of a query."""
        return self._connection.execute(sql)

    def cancel(self) -> None:
        """End the query that runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Nothing: it is its own cursor."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--benchmark", choices=["tpcds", "tpch"], default="tpcds")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--queries", default="")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--against", choices=["spark", "duckdb"], default="spark")
    arguments = parser.parse_args()

    import icesql

    folder, queries = warehouse(arguments.cache, arguments.benchmark, arguments.scale)
    wanted = [each for each in arguments.queries.split(",") if each] or sorted(queries, key=int)
    local = icesql.connect(warehouse=str(folder))
    local.execute("USE ds")
    other: Any
    if arguments.against == "duckdb":
        raw = arguments.cache / f"{arguments.benchmark}-raw-{arguments.scale:g}"
        other = Bare(raw)
    else:
        other = icesql.connect(warehouse=str(folder), engine="spark", master="local[2]")
        other.execute("USE ds")
    outcomes: Counter[str] = Counter()
    seconds = [0.0, 0.0]
    for number in wanted:
        started = time.perf_counter()
        expected = answer(local, queries[number], arguments.seconds)
        between = time.perf_counter()
        found = answer(other, queries[number], arguments.seconds)
        ended = time.perf_counter()
        seconds = [seconds[0] + between - started, seconds[1] + ended - between]
        if expected == found and found[0] == "rows":
            outcome, why = "same", ""
        elif expected[0] == found[0] == "rows":
            missing, more = expected[1] - found[1], found[1] - expected[1]
            outcome = "different"
            why = f"{sum(missing.values())} rows, local {list(missing)[:2]} other {list(more)[:2]}"
        else:
            outcome = found[0] if found[0] != "rows" else f"local {expected[0]}"
            why = str(found[1] if found[0] != "rows" else expected[1])
        outcomes[outcome] += 1
        print(f"q{number}: {outcome} ({ended - started:.1f} s) {why[:300]}", flush=True)
    print(f"local {seconds[0]:.1f} s, {arguments.against} {seconds[1]:.1f} s")
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    local.close()
    if arguments.against == "spark":
        other.close()
    return 0 if set(outcomes) == {"same"} else 1


if __name__ == "__main__":
    sys.exit(main())
