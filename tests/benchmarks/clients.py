"""Point lookups by many threads of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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
    """The time and the CPU time of a lookup, with a cursor for each thread."""
    took: list[list[float]] = [[] for _ in range(clients)]
    ready, stop = threading.Barrier(clients + 1), threading.Event()
    failed: list[BaseException] = []

    def run(number: int) -> None:
        cursor, key = connection.cursor(), number + 1
        try:
            cursor.execute(sql, [key]).fetchall()
            ready.wait()
            while not stop.is_set():
                started = time.perf_counter()
                cursor.execute(sql, [key]).fetchall()
                took[number].append(time.perf_counter() - started)
                key = (key * 5 + 7) % 10_000
        except BaseException as error:
            failed.append(error)
            ready.abort()

    threads = [threading.Thread(target=run, args=[number]) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        ready.wait()
        started, cpu = time.perf_counter(), time.process_time()
        time.sleep(seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    every = sorted(each for own in took for each in own)
    rate = len(every) / wall
    late = every[int(len(every) * 0.95)]
    return {"wall": 1 / rate, "cpu": cpu / len(every), "a second": rate, "p95 ms": 1000 * late}


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
    return side_by_side(cache, names, given, cases, module="clients", rounds=rounds, warm=0)
