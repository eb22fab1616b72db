"""Tables in an object store: icesql against its peers, first and second run, requests counted.

    python tests/benchmarks/stores.py CACHE [--latency 0.03] [--bandwidth 80e6] [--runs 3] [--only …]

An S3 server of this machine answers each request after ``--latency`` seconds and gives each
connection ``--bandwidth`` bytes a second. Every line is run in a new process with an empty cache:
first run, second run in the same process, then once more in a fresh process with the cache that
the first left. Engines are loaded before the clock starts. Seconds, and beside them (requests of
data files, of all, rounds of requests that wait for one another, MB, most at once); CPU seconds of
the second run. Medians, and ratios of these: icesql divided by the peer. In the end the requests of
each query as a table. The peers are DuckDB 1.5.5 with its extensions iceberg and
httpfs from PyPI, and DuckDB's own Parquet reader (the version that icesql uses) over fsspec.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "stores"))
from published import new_table, publish  # type: ignore[import-not-found]
from tpch import environment, warehouse  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "stores" / "server.py"
WORKER = Path(__file__).with_name("stores_worker.py")
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
SMALL_FILES, SMALL_ROWS = 800, 5_000

QUERIES = {
    "q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM {lineitem} "
    "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "point": "SELECT * FROM {lineitem} WHERE l_orderkey = 12325",
    "limit10": "SELECT * FROM {lineitem} LIMIT 10",
    "sum800": "SELECT sum(value) FROM {events}",
}
TARGETS = {"q6": (0.7, 1.0), "point": (0.7, 1.0), "limit10": (1.0, 1.0), "sum800": (0.1, 1.0)}


def bucket(cache: Path) -> Path:
    """A folder with a bucket ``lake`` of the tables ``lineitem`` and ``events``, made once."""
    folder = cache / "stores"
    if (folder / "done").exists():
        return folder
    source = warehouse(cache, 1)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _lineitem(folder, source)
    _events(folder)
    (folder / "done").touch()
    return folder


def _lineitem(folder: Path, source: Path) -> None:
    import pyarrow.parquet as pq
    from pyiceberg.table import StaticTable
    from query_worker import metadata_files  # type: ignore[import-not-found]

    table = StaticTable.from_metadata(metadata_files(source)["lineitem"])
    tasks = table.scan().plan_files()
    files = [task.file.file_path.removeprefix("file://") for task in tasks]
    here = new_table(folder, "lineitem", table.schema().as_arrow())
    for path in sorted(files):
        here.append(pq.read_table(path))
    publish(folder, here, "lineitem")


def _events(folder: Path) -> None:
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(7)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("ts", pa.timestamp("us")),
            ("cat", pa.string()),
            ("value", pa.float64()),
        ]
    )
    table = new_table(folder, "events", schema)
    import pyarrow.parquet as pq

    paths = []
    for number in range(SMALL_FILES):
        rows = pa.table(
            {
                "id": np.arange(number * SMALL_ROWS, (number + 1) * SMALL_ROWS),
                "ts": pa.array(np.arange(SMALL_ROWS) * 1_000_000 + number * 3_600_000_000).cast(
                    pa.timestamp("us")
                ),
                "cat": pa.array([f"cat{number % 20:02}"] * SMALL_ROWS),
                "value": np.round(chance.random(SMALL_ROWS) * 100, 2),
            },
            schema=table.schema().as_arrow(),
        )
        path = folder / "lake" / "events" / "data" / f"{number:05}-{_hex(chance)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        paths.append(f"file://{path}")
    table.add_files(paths)
    publish(folder, table, "events")


def _hex(chance: object) -> str:
    return f"{chance.integers(1 << 62):016x}"  # type: ignore[attr-defined]


def server(folder: Path, latency: float, bandwidth: float) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(folder), "0", str(latency), str(bandwidth)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def measure(
    python: Path, engine: str, folder: Path, port: int, query: str, cache: Path
) -> list[dict]:
    """Two runs in one process: seconds and counts. Raises RuntimeError."""
    urlopen(f"http://127.0.0.1:{port}/!counts").read()
    done = subprocess.run(
        [str(python), str(WORKER), engine, str(folder), str(port), QUERIES[query]],
        env={
            **{name: value for name, value in os.environ.items() if name != _NO_BYTECODE},
            # Compiled once, as an installed package is.
            "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
            "PYTHONPATH": str(ROOT),
            "ICESQL_CACHE_DIRECTORY": str(cache),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return json.loads(done.stdout.splitlines()[-1])


def line(python: Path, engine: str, folder: Path, port: int, query: str) -> list[dict]:
    """First and second run, and the first of a fresh process with the cache of these."""
    cache = Path(f"/tmp/icesql-stores-{os.getpid()}")
    shutil.rmtree(cache, ignore_errors=True)
    try:
        runs = measure(python, engine, folder, port, query, cache)
        if engine == "icesql":
            runs.append(measure(python, engine, folder, port, query, cache)[0])
        return runs
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def print_requests(table: list[tuple[str, str, list[dict]]]) -> None:
    """What each query asked the store for, in its first and in its second run."""
    print("\n| query | engine | run | metadata | data | rounds | MB |")
    print("|---|---|---|--:|--:|--:|--:|")
    for query, engine, runs in table:
        for name, run in zip(("first", "second"), runs, strict=False):
            metadata = run["requests"] - run["data"]
            print(
                f"| {query} | {engine} | {name} | {metadata} | {run['data']} | {run['rounds']} "
                f"| {run['megabytes']:.1f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--latency", type=float, default=0.03)
    parser.add_argument("--bandwidth", type=float, default=80e6)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default=",".join(QUERIES))
    parser.add_argument("--engines", default="icesql,duckdb-iceberg,fsspec")
    given = parser.parse_args()
    folder = bucket(given.cache.absolute())
    engines = given.engines.split(",")
    pythons = {engine: Path(sys.executable) for engine in engines}
    if "duckdb-iceberg" in engines:
        names = (
            "duckdb",
            "duckdb-extension-iceberg",
            "duckdb-extension-avro",
            "duckdb-extension-httpfs",
        )
        pythons["duckdb-iceberg"] = environment(
            given.cache / "env-duckdb-stores", *(f"{name}==1.5.5" for name in names)
        )
    process, port = server(folder, given.latency, given.bandwidth)
    try:
        print(
            f"{'':8} {'engine':15} first, second, fresh process: s (data requests, all, rounds, MB, at once)"
        )
        table: list[tuple[str, str, list[dict]]] = []
        for query in given.only.split(","):
            medians: dict[str, list[float]] = {}
            cpu: dict[str, float] = {}
            answers = set()
            for engine in engines:
                series = []
                try:
                    for _ in range(
                        given.runs if not (query == "sum800" and engine != "icesql") else 1
                    ):
                        series.append(line(pythons[engine], engine, folder, port, query))
                        time.sleep(0.2)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{query:8} {engine:15} {error}")
                    continue
                shown = []
                medians[engine] = []
                for place in range(len(series[0])):
                    runs = [each[place] for each in series]
                    answers.add(runs[0]["digest"])
                    seconds = statistics.median(run["seconds"] for run in runs)
                    medians[engine].append(seconds)
                    last = runs[-1]
                    shown.append(
                        f"{seconds:6.3f} ({last['data']}, {last['requests']}, {last['rounds']}, "
                        f"{last['megabytes']:.1f}, {last['at_once']})"
                    )
                cpu[engine] = statistics.median(each[1]["cpu"] for each in series)
                table.append((query, engine, series[-1]))
                shown.append(f"cpu of the second {cpu[engine]:.3f}")
                print(f"{query:8} {engine:15} {'  '.join(shown)}", flush=True)
            if len(answers) > 1:
                print(f"{query:8} THE ANSWERS DIFFER")
            ours = medians.get("icesql")
            for peer, theirs in medians.items():
                if ours and peer != "icesql":
                    ratios = [mine / other for mine, other in zip(ours, theirs, strict=False)]
                    goal = TARGETS[query] if peer == "duckdb-iceberg" else ("–", "–")
                    print(
                        f"{query:8} / {peer:13} first {ratios[0]:.2f} (goal {goal[0]}), "
                        f"second {ratios[1]:.2f} (goal {goal[1]}), "
                        f"cpu of the second {cpu['icesql'] / cpu[peer]:.2f}",
                        flush=True,
                    )
        print_requests(table)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


if __name__ == "__main__":
    main()
