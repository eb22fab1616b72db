"""TPC-H on Spark: icesql's ways of reading against Spark's own Parquet reader on the same files.

    python tests/benchmarks/spark.py CACHE [--scale 1] [--runs 5] [--queries q1,q6]

One local[2] session, warm: engines take turns, the median of the runs counts. Ratios are icesql
divided by Spark's own reader: below 1 icesql is faster. "chosen" is what a user gets; "partial" (of
the tasks) and "reader" (Spark's) allow one way only. --ways tasks shows the rows of tasks, which is
what remains where no other way applies.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from tpch import JOINED, QUERIES, TABLES, warehouse  # type: ignore[import-not-found]

WAYS = ("chosen", "partial", "reader")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--queries", default=",".join(JOINED))
    parser.add_argument("--ways", default=",".join(WAYS))
    arguments = parser.parse_args()

    import icesql
    from icesql.engine.spark.scans import FRAGMENTS, SPARK_READER, Scans

    allowed = {
        "chosen": Scans.ways,
        "partial": frozenset({FRAGMENTS}),
        "reader": frozenset({SPARK_READER}),
        "tasks": frozenset(),
    }
    folder = warehouse(arguments.cache, arguments.scale)
    connection = icesql.connect(warehouse=str(folder), engine="spark", master="local[2]")
    connection.execute("USE tpch")
    session = own_reader(connection)
    ways = [way for way in arguments.ways.split(",") if way in allowed]
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    print(f"TPC-H scale {arguments.scale:g}, local[2], {os.cpu_count()} cores, median of "
          f"{arguments.runs} warm runs, seconds (ratio to Spark's own reader)")  # fmt: skip
    print("query  " + "own reader".rjust(12) + "".join(way.rjust(18) for way in ways))
    for query in arguments.queries.split(","):
        sql = QUERIES[query]

        def own(text: str = sql) -> list[tuple[object, ...]]:
            return [tuple(row) for row in session.sql(text).toArrow().to_pylist()]

        def mine(way: str, text: str = sql) -> list[tuple[object, ...]]:
            Scans.ways = allowed[way]
            return connection.execute(text).fetchall()  # type: ignore[no-any-return]

        seconds: dict[str, list[float]] = {name: [] for name in ("own", *ways)}
        for run in range(arguments.runs + 2):
            for name in seconds:
                started = time.perf_counter()
                own() if name == "own" else mine(name)
                if run >= 2:
                    seconds[name].append(time.perf_counter() - started)
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        line = f"{query:6} " + f"{medians['own']:12.2f}"
        for way in ways:
            ratio = medians[way] / medians["own"]
            ratios[way].append(ratio)
            line += f"{medians[way]:10.2f} ({ratio:4.2f}x)"
        print(line, flush=True)
    means = {way: math.exp(statistics.fmean(map(math.log, each))) for way, each in ratios.items()}
    print("geometric mean     " + "".join(f"{means[way]:16.2f}x" for way in ways))
    connection.close()


def own_reader(connection: object) -> object:
    """A session in which each table is a view of Spark's own reader over the same files."""
    from pyspark.sql import SparkSession

    connection.execute("SELECT 1").fetchall()  # type: ignore[attr-defined]
    session = SparkSession.builder.getOrCreate().newSession()
    for table in TABLES:
        cursor = connection.execute(f"SELECT DISTINCT _file FROM {table}")  # type: ignore[attr-defined]
        files = [row[0] for row in cursor.fetchall()]
        session.read.parquet(*files).createOrReplaceTempView(table)
    return session


if __name__ == "__main__":
    main()
