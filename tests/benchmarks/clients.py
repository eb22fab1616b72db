"""Point lookups by many threads through one process: icesql against DuckDB on the same files.

    python tests/benchmarks/clients.py CACHE [--scale 0.01] [--clients 16] [--seconds 5] [--rounds 3]

Every client is a thread with a cursor of its own connection's, and asks for one order after the
other: ``SELECT * FROM orders WHERE o_orderkey = ?``. DuckDB reads the list of the table's Parquet
files, with no Iceberg at all. Rounds of the two take turns; each prints queries a second, and the
median and 95th percentile of a query in ms. Ratios above 1 mean that icesql does more.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from query_worker import metadata_files  # type: ignore[import-not-found]
from tpch import warehouse  # type: ignore[import-not-found]

# A function that a client calls with a key, made in the client's own thread.
Client = Callable[[], Callable[[int], list[Any]]]


def icesql_clients(data: Path) -> tuple[Client, Callable[[], None]]:
    import icesql

    connection = icesql.connect(uri=f"sqlite:///{data}/catalog.db")

    def client() -> Callable[[int], list[Any]]:
        cursor = connection.cursor()

        def ask(key: int) -> list[Any]:
            cursor.execute("SELECT * FROM tpch.orders WHERE o_orderkey = ?", [key])
            return cursor.fetchall()

        return ask

    return client, connection.close


def duckdb_clients(data: Path) -> tuple[Client, Callable[[], None]]:
    import duckdb

    location = Path(metadata_files(data)["orders"])
    files = sorted(map(str, location.parents[1].glob("data/**/*.parquet")))
    listed = ", ".join(f"'{path}'" for path in files)
    connection = duckdb.connect()

    def client() -> Callable[[int], list[Any]]:
        cursor = connection.cursor()

        def ask(key: int) -> list[Any]:
            sql = f"SELECT * FROM read_parquet([{listed}]) WHERE o_orderkey = ?"
            found: list[Any] = cursor.execute(sql, [key]).fetchall()
            return found

        return ask

    return client, connection.close


ENGINES = {"icesql": icesql_clients, "duckdb": duckdb_clients}


def measure(make: Client, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Queries a second, and how long each took in ms, sorted."""
    took: list[list[float]] = [[] for _ in range(clients)]
    ready, stop = threading.Barrier(clients + 1), threading.Event()
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            ask = make()
            key = number + 1
            ask(key)
            ready.wait()
            while not stop.is_set():
                started = time.perf_counter()
                ask(key)
                took[number].append((time.perf_counter() - started) * 1000)
                key = (key * 5 + 7) % 10_000
        except BaseException as error:
            failed.append(error)
            ready.abort()

    threads = [threading.Thread(target=run, args=[number]) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        ready.wait()
        started = time.perf_counter()
        time.sleep(seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
    elapsed = time.perf_counter() - started
    every = sorted(each for own in took for each in own)
    return len(every) / elapsed, every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    data = warehouse(options.cache.resolve(), options.scale)
    made = {name: engine(data) for name, engine in ENGINES.items()}
    answers = {name: make()(7) for name, (make, _) in made.items()}
    if answers["icesql"] != answers["duckdb"]:
        print("DIFFERENT ANSWERS")
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, {options.clients} clients")
    rates: dict[str, list[float]] = {name: [] for name in made}
    tails: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(options.rounds):
        for name, (make, _) in made.items():
            rate, took = measure(make, options.clients, options.seconds)
            p95 = took[int(len(took) * 0.95)]
            rates[name].append(rate)
            tails[name].append(p95)
            print(f"{name:>8} {rate:8.0f} q/s   p50 {statistics.median(took):6.1f} ms", end="")
            print(f"   p95 {p95:6.1f} ms", flush=True)
    ratios = [a / b for a, b in zip(rates["icesql"], rates["duckdb"], strict=True)]
    slower = [b / a for a, b in zip(tails["icesql"], tails["duckdb"], strict=True)]
    print(f"queries a second, icesql / duckdb: {statistics.median(ratios):.2f}", end="")
    print(f"; p95, duckdb / icesql: {statistics.median(slower):.2f}")
    for _, close in made.values():
        close()


if __name__ == "__main__":
    main()
