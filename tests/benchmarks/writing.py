"""INSERT … SELECT of TPC-H lineitem against DuckDB's COPY to Parquet and PyIceberg's append, and
UPDATE and DELETE of one row of a hundred against the same on a native table of DuckDB's.

    python tests/benchmarks/writing.py LINEITEM.parquet [--runs 3] [--threads 2]

All three read the same Parquet file and write zstd. COPY writes one bare file: no table, no commit,
no bounds of Iceberg's. Each run goes to a new folder; the files are removed. Prints the seconds of
each run and the medians.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

import icesql

CODEC = {"write.parquet.compression-codec": "zstd"}


def by_icesql(source: str, folder: Path, threads: int, partitions: str = "") -> float:
    with icesql.connect(warehouse=str(folder), files=True, settings={"threads": threads}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t {partitions} AS SELECT * FROM '{source}' LIMIT 0")
        started = time.perf_counter()
        con.execute(f"INSERT INTO s.t SELECT * FROM '{source}'")
        return time.perf_counter() - started


def by_copy(source: str, folder: Path, threads: int) -> float:
    with duckdb.connect(config={"threads": threads}) as con:
        started = time.perf_counter()
        con.execute(f"COPY (SELECT * FROM '{source}') TO '{folder}/x.parquet' (CODEC zstd)")
        return time.perf_counter() - started


def by_pyiceberg(source: str, folder: Path, threads: int) -> float:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("s")
    table = catalog.create_table("s.t", pq.read_schema(source), properties=CODEC)
    started = time.perf_counter()
    table.append(pq.read_table(source))
    return time.perf_counter() - started


CHANGES = (
    "UPDATE {} SET l_tax = l_tax + 1, l_comment = 'changed' WHERE l_orderkey % 100 = 7",
    "DELETE FROM {} WHERE l_orderkey % 100 = 8",
)


def changed_by_icesql(source: str, folder: Path, threads: int, mode: str) -> float:
    with icesql.connect(warehouse=str(folder), files=True, settings={"threads": threads}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            f"CREATE TABLE s.t TBLPROPERTIES ('format-version' = '3', 'write.update.mode' = '{mode}', "
            f"'write.delete.mode' = '{mode}') AS SELECT * FROM '{source}'"
        )
        started = time.perf_counter()
        for each in CHANGES:
            con.execute(each.format("s.t"))
        return time.perf_counter() - started


def changed_by_duckdb(source: str, folder: Path, threads: int) -> float:
    with duckdb.connect(folder / "x.db", config={"threads": threads}) as con:
        con.execute(f"CREATE TABLE t AS SELECT * FROM '{source}'")
        con.execute("CHECKPOINT")
        started = time.perf_counter()
        for each in CHANGES:
            con.execute(each.format("t"))
        con.execute("CHECKPOINT")
        return time.perf_counter() - started


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    ways: dict[str, Callable[[str, Path, int], float]] = {
        "icesql INSERT": by_icesql,
        "icesql INSERT, partitioned by month": lambda source, folder, threads: by_icesql(
            source, folder, threads, "PARTITIONED BY (months(l_shipdate))"
        ),
        "DuckDB COPY": by_copy,
        "PyIceberg append": by_pyiceberg,
        **{
            f"icesql UPDATE and DELETE, {mode}": lambda source, folder, threads, mode=mode: (
                changed_by_icesql(source, folder, threads, mode)
            )
            for mode in ("copy-on-write", "merge-on-read")
        },
        "DuckDB UPDATE and DELETE": changed_by_duckdb,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(given.runs):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp(prefix="icesql-writing-"))
            try:
                times[name].append(way(given.source, folder, given.threads))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            print(f"run {run + 1} {name}: {times[name][-1]:.2f} s", flush=True)
    for name, taken in times.items():
        print(f"{name:<42} {statistics.median(taken):6.2f} s")


if __name__ == "__main__":
    main()
