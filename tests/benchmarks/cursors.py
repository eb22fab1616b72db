"""Cursors: rows as Python values, and point lookups by many threads of one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from sides import side_by_side
from tables import CACHE, described, suite, warehouse

from tests.tables import read_table

SCHEMAS = dict(read_table(__file__, "cursors.tsv"))


def everything(cursor: Any) -> int:
    return len(cursor.fetchall())


def in_lots(cursor: Any) -> int:
    count = 0
    while rows := cursor.fetchmany(1_000):
        count += len(rows)
    return count


def one_by_one(cursor: Any) -> int:
    if hasattr(cursor, "__next__"):
        return sum(1 for _ in cursor)
    return sum(1 for _ in iter(cursor.fetchone, None))


def lookups(connection: Any, sql: str, clients: int, seconds: float) -> Any:
    """Measure a lookup, by as many threads as there are clients, each with a cursor of its own."""
    until = time.perf_counter() + seconds

    def run(number: int) -> list[float]:
        cursor, key, took = connection.cursor(), number + 1, []
        while (started := time.perf_counter()) < until:
            cursor.execute(sql, [key]).fetchall()
            took.append(time.perf_counter() - started)
            key = (key * 5 + 7) % 10_000
        return took

    started, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(clients) as pool:
        every = sorted(each for took in pool.map(run, range(clients)) for each in took)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    late = every[int(len(every) * 0.95)]
    return {"wall": wall / len(every), "cpu": cpu / len(every), "p95 ms": 1000 * late}


WAYS = {"fetchall": everything, "fetchmany": in_lots, "iteration": one_by_one}


def icesql(warehouse: str, namespace: str, **_: Any) -> Callable[..., Any]:
    import icesql

    connection = icesql.connect(warehouse=warehouse)
    return partial(asked, connection, lambda name: f"SELECT * FROM {namespace}.{name}")


def duckdb(tables: dict[str, Any], **_: Any) -> Callable[..., Any]:
    import duckdb

    sql = {name: f"FROM read_parquet({each['files']})" for name, each in tables.items()}
    return partial(asked, duckdb.connect(), sql.__getitem__)


def asked(connection: Any, sql_of: Callable[[str], str], name: str, way: str, *more: Any) -> Any:
    """Fetch the rows of a table in one way, or look some up."""
    if way == "lookups":
        return lookups(connection, f"{sql_of(name)} WHERE o_orderkey = ?", *more)
    return [[WAYS[way](connection.execute(sql_of(name)))]]


def fetching(
    cache: Path = CACHE,
    rows: int = 1_000_000,
    rounds: int = 3,
    only: str = "",
    peers: str = "duckdb",
) -> int:
    """All rows of a table by each method of a cursor, beside DuckDB's own over the same file."""
    statements = (
        f"CREATE TABLE {name} AS SELECT {columns} FROM range({rows})"
        for name, columns in SCHEMAS.items()
    )
    given = described(warehouse(cache / f"fetching-{rows}", statements))
    cases = {f"{name}-{way}": (name, way) for name in SCHEMAS for way in WAYS}
    names = ("icesql", *peers.split(","))
    return side_by_side(
        cache, names, given, cases, module="cursors", rounds=rounds, warm=1, only=only
    )


def clients(
    cache: Path = CACHE,
    scale: float = 0.01,
    clients: int = 16,
    seconds: float = 5.0,
    rounds: int = 3,
    peers: str = "duckdb",
) -> int:
    """Lookups of orders by many threads of one process; wall is the time of one among all."""
    given = described(suite(cache, "tpch", scale)[0])
    names = ("icesql", *peers.split(","))
    cases = {f"{clients} clients": ("orders", "lookups", clients, seconds)}
    return side_by_side(cache, names, given, cases, module="cursors", rounds=rounds, warm=1)
