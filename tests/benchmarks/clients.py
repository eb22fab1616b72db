"""Point lookups by many threads of one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from sides import side_by_side
from tables import described, suite

SQL = "SELECT * FROM {} WHERE o_orderkey = ?"


def icesql(warehouse: str, namespace: str, **_: Any) -> Callable[..., Any]:
    import icesql

    connection = icesql.connect(warehouse=warehouse)
    return partial(asked, connection, SQL.format(f"{namespace}.orders"))


def duckdb(tables: dict[str, Any], **_: Any) -> Callable[..., Any]:
    import duckdb

    return partial(
        asked, duckdb.connect(), SQL.format(f"read_parquet({tables['orders']['files']})")
    )


def asked(connection: Any, sql: str, clients: int, seconds: float) -> Any:
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


def clients(
    cache: Path,
    scale: float = 0.01,
    clients: int = 16,
    seconds: float = 5.0,
    rounds: int = 3,
    peers: str = "duckdb",
) -> int:
    """Lookups of orders by many threads of one process; wall is the time of one among all."""
    given = described(suite(cache, "tpch", scale)[0])
    names, cases = ("icesql", *peers.split(",")), {f"{clients} clients": (clients, seconds)}
    return side_by_side(cache, names, given, cases, module="clients", rounds=rounds, warm=1)
