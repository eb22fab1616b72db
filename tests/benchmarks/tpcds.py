"""TPC-DS or TPC-H on both engines: which queries give the same rows, which differ or are refused.

    python tests/benchmarks/tpcds.py CACHE [--benchmark tpch] [--scale 0.1] [--queries 1,2,3]

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--benchmark", choices=["tpcds", "tpch"], default="tpcds")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--queries", default="")
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()

    import icesql

    folder, queries = warehouse(arguments.cache, arguments.benchmark, arguments.scale)
    wanted = [each for each in arguments.queries.split(",") if each] or sorted(queries, key=int)
    local = icesql.connect(warehouse=str(folder))
    spark = icesql.connect(warehouse=str(folder), engine="spark", master="local[2]")
    outcomes: Counter[str] = Counter()
    for connection in (local, spark):
        connection.execute("USE ds")
    for number in wanted:
        started = time.perf_counter()
        expected = answer(local, queries[number], arguments.seconds)
        found = answer(spark, queries[number], arguments.seconds)
        if expected == found and found[0] == "rows":
            outcome, why = "same", ""
        elif expected[0] == found[0] == "rows":
            missing, more = expected[1] - found[1], found[1] - expected[1]
            outcome = "different"
            why = f"{sum(missing.values())} rows, local {list(missing)[:2]} spark {list(more)[:2]}"
        else:
            outcome = found[0] if found[0] != "rows" else f"local {expected[0]}"
            why = str(found[1] if found[0] != "rows" else expected[1])
        outcomes[outcome] += 1
        print(
            f"q{number}: {outcome} ({time.perf_counter() - started:.1f} s) {why[:300]}", flush=True
        )
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    local.close()
    spark.close()
    return 0 if set(outcomes) == {"same"} else 1


if __name__ == "__main__":
    sys.exit(main())
