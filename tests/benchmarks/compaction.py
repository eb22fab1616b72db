"""rewrite_data_files of 2,000 small files of lineitem against DuckDB's COPY of the same rows.

    python tests/benchmarks/compaction.py LINEITEM.parquet FOLDER [--files 2000] [--runs 3]
        [--threads 2] [--only mixed,…] [--spark] [--java PYTHON --jars A.jar:B.jar]

The tables are made once below FOLDER: without deletes, with position deletes of 1 % of the rows, with
these and equality deletes, and with deletion vectors (v3, row lineage kept). COPY reads the same data
files and writes one bare file with the same codec: it merges no deletes and commits nothing. All
ways are interleaved; each line has wall seconds, CPU seconds of all threads and the greatest memory
of its own process. With ``--spark`` icesql's tasks on Spark and with ``--java`` Java's procedure run, too,
each with a Spark that has compacted a small table before; their CPU seconds are not known. Name the
PySpark of the latter in PYTHONPATH to have both on the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

WARM = "warm"
KINDS = ("none", "positions", "mixed", "vectors")
RUN = """
import sys, time
kind, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "copy":
    import duckdb
    con = duckdb.connect(config={"threads": threads})
    con.execute("SET enable_progress_bar = false")
    started, cpu = time.perf_counter(), time.process_time()
    con.execute(
        f"COPY (SELECT * FROM read_parquet('{folder}/s/none/data/*.parquet')) "
        f"TO '{folder}/copy.parquet' (CODEC zstd)"
    )
else:
    import icesql
    con = icesql.connect(warehouse=folder, settings={"threads": threads})
    started, cpu = time.perf_counter(), time.process_time()
    done = con.execute(
        f"CALL system.rewrite_data_files('s.{kind}', options => map('rewrite-all', 'true'))"
    ).fetchall()
took = time.perf_counter() - started, time.process_time() - cpu
# Not ru_maxrss, which begins with what the process that starts this one has.
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
print(*took, peak)
"""
SPARK = """
import sys, time, icesql
kind, folder, threads = sys.argv[1:4]
con = icesql.connect(warehouse=folder, engine="spark", master=f"local[{threads}]")
for name in ("warm", kind):
    started = time.perf_counter()
    done = con.execute(
        f"CALL system.rewrite_data_files('s.{name}', options => map('rewrite-all', 'true'))"
    ).fetchall()
print(time.perf_counter() - started, 0, 0)
"""
JAVA = """
import sys, time
from pyspark.sql import SparkSession
kind, folder, threads, jars = sys.argv[1:5]
spark = (
    SparkSession.builder.master(f"local[{threads}]")
    .config("spark.driver.extraClassPath", jars)
    .config("spark.sql.catalog.c", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.c.type", "hadoop").config("spark.sql.catalog.c.warehouse", folder)
    .config(
        "spark.sql.extensions",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    .config("spark.driver.memory", "4g").config("spark.ui.enabled", "false").getOrCreate()
)
for name in ("warm", kind):
    started = time.perf_counter()
    done = spark.sql(
        f"CALL c.system.rewrite_data_files(table => 's.{name}', "
        "options => map('rewrite-all', 'true'))"
    ).collect()
print(time.perf_counter() - started, 0, 0)
"""


def make(source: str, folder: Path, files: int) -> None:
    """The tables, unless they are there."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.benchmarks.delete_tables import _json_type
    from tests.writer.table import TableWriter, arrow_schema

    rows = pq.read_table(source)
    plain = {pa.string_view(): pa.string()}
    rows = rows.cast(pa.schema([f.with_type(plain.get(f.type, f.type)) for f in rows.schema]))
    fields = [
        {"id": n, "name": column.name, "required": False, "type": _json_type(column.type)}
        for n, column in enumerate(rows.schema, 1)
    ]
    rows = rows.cast(arrow_schema(fields))
    size = -(-rows.num_rows // files)
    for kind in (*KINDS, WARM):
        if (folder / "s" / kind).exists():
            continue
        if kind == WARM:
            rows = rows.slice(0, 10 * size)
        table = TableWriter(
            str(folder / "s" / kind), fields, version=3 if kind == "vectors" else 2,
            properties={"write.parquet.compression-codec": "zstd"},
        )  # fmt: skip

        def write(index: int, table: Any = table, rows: Any = rows) -> Any:
            part = rows.slice(index * size, size)
            return table.data_file(part, stats=False, compression="zstd")

        with ThreadPoolExecutor(2) as threads:
            data = list(threads.map(write, range(-(-rows.num_rows // size))))
        table.commit(data)
        chance = np.random.default_rng(7)
        gone = [
            (each, np.sort(chance.choice(count, count // 100, replace=False)).tolist())
            for each in data
            if (count := each.record["record_count"])
        ]
        if kind in ("positions", "mixed"):
            pairs = [[(each, at) for each, ats in gone[n : n + 20] for at in ats]
                     for n in range(0, len(gone), 20)]  # fmt: skip
            table.commit([table.position_deletes(each, scoped=False) for each in pairs])
        if kind == "vectors":
            table.commit(table.deletion_vectors(gone))
        if kind == "mixed":
            orders = np.unique(rows["l_orderkey"].to_numpy())
            few = np.sort(chance.choice(orders, len(orders) // 100, replace=False))
            keys = pa.table({"l_orderkey": few}, schema=arrow_schema(fields[:1]))
            table.commit([table.equality_deletes(keys, [1])])


def files_below(folder: Path) -> dict[Path, bytes | None]:
    """All files, with what those have that are written again."""
    found = [each for each in folder.rglob("*") if each.is_file()]
    return {each: each.read_bytes() if each.name == "version-hint.text" else None for each in found}


def run(program: str, python: str, *arguments: str) -> tuple[float, float, int]:
    command = [python, "-c", program, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    # Modules are compiled once, as where they are installed.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    wall, cpu, peak = done.stdout.split()[-3:]
    return float(wall), float(cpu), int(peak)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--files", type=int, default=2000)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--threads", default="2")
    arguments.add_argument("--only", default=",".join(KINDS))
    arguments.add_argument("--spark", action="store_true")
    arguments.add_argument("--java")
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    folder = given.folder.absolute()
    described = folder / "made.json"
    if not described.exists() or not (folder / "s" / WARM).exists():
        make(given.source, folder, given.files)
        described.write_text(json.dumps({"files": given.files}))
    kinds = given.only.split(",")
    taken: dict[str, list[tuple[float, float, int]]] = {}
    for _ in range(given.runs):
        ways = [("DuckDB COPY", RUN, sys.executable, ["copy", str(folder), given.threads])]
        for kind in kinds:
            here = [kind, str(folder), given.threads]
            ways.append((f"icesql, {kind}", RUN, sys.executable, here))
            if given.spark:
                ways.append((f"icesql on Spark, {kind}", SPARK, sys.executable, here))
            if given.java:
                ways.append((f"Java on Spark, {kind}", JAVA, given.java, [*here, given.jars]))
        for name, program, python, texts in ways:
            before = files_below(folder)
            try:
                taken.setdefault(name, []).append(run(program, python, *texts))
            finally:
                restore(folder, before)
            wall, cpu, peak = taken[name][-1]
            print(f"{name:<26} {wall:7.2f} s wall {cpu:7.2f} s CPU {peak:6} MB", flush=True)
    print("medians:")
    floor = [statistics.median(each[n] for each in taken["DuckDB COPY"]) for n in (0, 1)]
    for name, found in taken.items():
        wall, cpu = (statistics.median(each[n] for each in found) for n in (0, 1))
        peak = max(each[2] for each in found)
        print(
            f"{name:<26} {wall:7.2f} s ({wall / floor[0]:.2f} x) {cpu:7.2f} s CPU "
            f"({cpu / floor[1]:.2f} x) {peak:6} MB"
        )


def restore(folder: Path, before: dict[Path, bytes | None]) -> None:
    """The files as they were, so that each run begins with the same table."""
    for each in files_below(folder):
        if each not in before:
            each.unlink()
    for each, data in before.items():
        if data is not None:
            each.write_bytes(data)
    for each in folder.rglob("*"):
        if each.is_dir() and not any(each.iterdir()):
            shutil.rmtree(each)


if __name__ == "__main__":
    main()
