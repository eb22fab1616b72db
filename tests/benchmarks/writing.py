"""INSERT … SELECT of TPC-H lineitem against DuckDB's COPY to Parquet and PyIceberg's append;
with ``--changes`` UPDATE and DELETE of one row of a hundred against a native table of DuckDB's.

    python tests/benchmarks/writing.py LINEITEM.parquet [--runs 3] [--threads 2] [--changes]

All three read the same Parquet file and write zstd. COPY writes one bare file: no table, no commit,
no bounds of Iceberg's. Ways are interleaved, each run goes to a new folder and its files are
removed. Prints the medians of wall seconds and of CPU seconds of all threads, and how many times
COPY's they are; UPDATE and DELETE run with ``--changes`` only.
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

Taken = tuple[float, float]
CODEC = {"write.parquet.compression-codec": "zstd"}


def begun() -> Taken:
    return time.perf_counter(), time.process_time()


def taken_since(started: Taken) -> Taken:
    """Wall and CPU seconds."""
    now = begun()
    return now[0] - started[0], now[1] - started[1]


def by_icesql(source: str, folder: Path, threads: int, partitions: str = "") -> Taken:
    with icesql.connect(warehouse=str(folder), files=True, settings={"threads": threads}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t {partitions} AS SELECT * FROM '{source}' LIMIT 0")
        started = begun()
        con.execute(f"INSERT INTO s.t SELECT * FROM '{source}'")
        return taken_since(started)


def by_copy(source: str, folder: Path, threads: int) -> Taken:
    with duckdb.connect(config={"threads": threads}) as con:
        con.execute("SET enable_progress_bar = false")
        started = begun()
        con.execute(f"COPY (SELECT * FROM '{source}') TO '{folder}/x.parquet' (CODEC zstd)")
        return taken_since(started)


def by_pyiceberg(source: str, folder: Path, threads: int) -> Taken:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("s")
    table = catalog.create_table("s.t", pq.read_schema(source), properties=CODEC)
    started = begun()
    table.append(pq.read_table(source))
    return taken_since(started)


CHANGES = (
    "UPDATE {} SET l_tax = l_tax + 1, l_comment = 'changed' WHERE l_orderkey % 100 = 7",
    "DELETE FROM {} WHERE l_orderkey % 100 = 8",
)


def changed_by_icesql(source: str, folder: Path, threads: int, mode: str) -> Taken:
    with icesql.connect(warehouse=str(folder), files=True, settings={"threads": threads}) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            f"CREATE TABLE s.t TBLPROPERTIES ('format-version' = '3', 'write.update.mode' = '{mode}', "
            f"'write.delete.mode' = '{mode}') AS SELECT * FROM '{source}'"
        )
        started = begun()
        for each in CHANGES:
            con.execute(each.format("s.t"))
        return taken_since(started)


def changed_by_duckdb(source: str, folder: Path, threads: int) -> Taken:
    with duckdb.connect(folder / "x.db", config={"threads": threads}) as con:
        con.execute(f"CREATE TABLE t AS SELECT * FROM '{source}'")
        con.execute("CHECKPOINT")
        started = begun()
        for each in CHANGES:
            con.execute(each.format("t"))
        con.execute("CHECKPOINT")
        return taken_since(started)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--changes", action="store_true")
    given = arguments.parse_args()
    ways: dict[str, Callable[[str, Path, int], Taken]] = {
        "DuckDB COPY": by_copy,
        "icesql INSERT": by_icesql,
        "icesql INSERT, partitioned by month": lambda source, folder, threads: by_icesql(
            source, folder, threads, "PARTITIONED BY (months(l_shipdate))"
        ),
        "PyIceberg append": by_pyiceberg,
    }
    if given.changes:
        ways["DuckDB UPDATE and DELETE"] = changed_by_duckdb
        for mode in ("copy-on-write", "merge-on-read"):
            ways[f"icesql UPDATE and DELETE, {mode}"] = lambda source, folder, threads, mode=mode: (
                changed_by_icesql(source, folder, threads, mode)
            )
    times: dict[str, list[Taken]] = {name: [] for name in ways}
    for _ in range(given.runs):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp(prefix="icesql-writing-"))
            try:
                times[name].append(way(given.source, folder, given.threads))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    floor: Taken | None = None
    for name, taken in times.items():
        wall, cpu = (statistics.median(each[n] for each in taken) for n in (0, 1))
        floor = floor or (wall, cpu)
        print(
            f"{name:<42} {wall:6.2f} s ({wall / floor[0]:5.2f} x) {cpu:6.2f} s CPU "
            f"({cpu / floor[1]:5.2f} x)"
        )


if __name__ == "__main__":
    main()
