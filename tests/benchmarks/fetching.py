"""Rows as Python values: icesql's cursors beside DuckDB's own, over the same Parquet file.

    python tests/benchmarks/fetching.py [rows] [schema …]

For each schema and way (fetchall, fetchmany of 1,000, iteration; DuckDB's cursor is iterated by
fetchone, it has no other way) both run in turn in this process, each on two threads. Printed are
the least CPU seconds of each (all threads of the process) and icesql's divided by DuckDB's, below 1
where icesql is faster. Before that all values are compared: DuckDB's own differ only where its
Python values lose something (nanoseconds, months of intervals, keys of maps) or where the manual
promises others; ``_AS_TOLD`` says which.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb

import icesql

ROWS: Final = 1_000_000
THREADS: Final = 2
ROUNDS: Final = 3
# Columns over ``range``; NULLs in one row of ten where not said otherwise.
SCHEMAS: Final = {
    "integers": "range AS a, (range % 1000)::INTEGER AS b, (range % 7)::INTEGER AS c",
    "doubles": "range / 7.0::DOUBLE AS a, sqrt(range) AS b",
    "strings": "'row ' || range AS a, 'x' || (range % 50) AS b",
    "booleans": "range % 3 = 0 AS a, range % 2 = 0 AS b",
    "dates": "DATE '2000-01-01' + (range % 9000)::INTEGER AS a, "
    "CASE WHEN range % 10 > 0 THEN DATE '1900-01-01' + (range % 90)::INTEGER END AS b",
    "timestamps": "TIMESTAMP '2000-01-01' + INTERVAL (range) SECOND AS a, "
    "CASE WHEN range % 10 > 0 THEN TIMESTAMP '1900-01-01' + INTERVAL (range) SECOND END AS b",
    "decimals": "(range / 100)::DECIMAL(12, 2) AS a",
    "wide decimals": "(range / 100)::DECIMAL(30, 2) AS a",
    "uuids": "md5(range::VARCHAR)::UUID AS a",
    "binary": "('r' || range)::BLOB AS a",
    "NULLs": "CASE WHEN range % 2 = 0 THEN range END AS a, "
    "CASE WHEN range % 3 = 0 THEN 'x' || range END AS b, "
    "CASE WHEN range % 5 = 0 THEN range / 3.0::DOUBLE END AS c",
    "mixed": "range AS id, 'customer ' || (range % 9999) AS name, range / 3.0::DOUBLE AS amount, "
    "DATE '2020-01-01' + (range % 900)::INTEGER AS day, "
    "TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND AS at, "
    "(range % 100000 / 100)::DECIMAL(10, 2) AS price, "
    "CASE WHEN range % 10 > 0 THEN range % 7 END AS n",
    "lists": "[range, range + 1, NULL] AS a",
    "lists of strings": "['a' || range, 'b'] AS a",
    "structs": "{'a': range, 'b': 'x' || range} AS a",
    "structs with times": "{'a': range, 'b': TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND} AS a",
    "maps": "MAP {'k': range} AS a",
}
# DuckDB's dicts are lists of pairs in icesql: a key of a map may be a list.
_AS_TOLD: Final[dict[str, Callable[[Any], Any]]] = {
    "maps": lambda row: tuple(list(value.items()) for value in row)
}


def everything(cursor: Any) -> int:
    return len(cursor.fetchall())


def in_lots(cursor: Any) -> int:
    count = 0
    while rows := cursor.fetchmany(1_000):
        count += len(rows)
    return count


def one_by_one(cursor: Any) -> int:
    count = 0
    if hasattr(cursor, "__next__"):
        for _ in cursor:
            count += 1
        return count
    fetch = cursor.fetchone
    while fetch() is not None:
        count += 1
    return count


WAYS: Final = {"fetchall": everything, "fetchmany": in_lots, "iteration": one_by_one}


def seconds(execute: Callable[[], Any], way: Callable[[Any], int], rows: int) -> float:
    gc.collect()
    begun = time.process_time()
    assert way(execute()) == rows
    return time.process_time() - begun


def compare(name: str, schema: str, rows: int, folder: Path) -> list[float]:
    """Ratios of the ways, after the values were compared."""
    with (
        duckdb.connect(config={"threads": THREADS}) as peer,
        icesql.connect(warehouse=folder, settings={"threads": THREADS}) as ours,
    ):
        table = f"s.{name.replace(' ', '_')}"
        ours.execute(f"CREATE TABLE {table} AS SELECT {schema} FROM range({rows})")
        ((path,),) = ours.execute(f"SELECT file_path FROM {table}.files").fetchall()

        def by_icesql() -> Any:
            return ours.execute(f"SELECT * FROM {table}")

        def by_duckdb() -> Any:
            return peer.execute("SELECT * FROM read_parquet(?)", [path.removeprefix("file://")])

        wanted, found = by_duckdb().fetchall(), by_icesql().fetchall()
        wanted = list(map(_AS_TOLD.get(name, tuple), wanted))
        differing = sum(map(_differ, wanted, found))
        assert (len(wanted), differing) == (len(found), 0), f"{name}: {differing} rows differ"
        del wanted, found
        ratios = []
        for way, fetch in WAYS.items():
            took = {"icesql": 9e9, "duckdb": 9e9}
            for _ in range(ROUNDS):
                for engine, execute in (("duckdb", by_duckdb), ("icesql", by_icesql)):
                    took[engine] = min(took[engine], seconds(execute, fetch, rows))
            ratios.append(took["icesql"] / took["duckdb"])
            print(
                f"{name:20} {way:10} icesql {took['icesql']:6.3f} s  DuckDB {took['duckdb']:6.3f} s"
                f"  {ratios[-1]:.2f}",
                flush=True,
            )
        return ratios


def _differ(one: Any, other: Any) -> bool:
    return bool(one != other or list(map(type, one)) != list(map(type, other)))


def main() -> None:
    given = sys.argv[1:]
    rows = int(given.pop(0)) if given and given[0].isdigit() else ROWS
    with tempfile.TemporaryDirectory() as folder:
        with icesql.connect(warehouse=folder) as connection:
            connection.execute("CREATE SCHEMA s")
        for name in given or SCHEMAS:
            compare(name, SCHEMAS[name], rows, Path(folder))


if __name__ == "__main__":
    main()
