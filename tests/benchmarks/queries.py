"""TPC-H queries on Iceberg tables: icesql against its peers, cold and warm, in one run.

    python tests/benchmarks/queries.py CACHE [--scale 1] [--runs 5] [--queries q1,q6] [--engines …]

CACHE keeps the data and the environments of the peers. Cold is a fresh process from start to exit,
engines interleaved; warm is the median of later runs in one process. Ratios are icesql divided by
the peer: below 1 icesql is faster. A peer that cannot answer shows its error and no number.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from query_worker import ENGINES  # type: ignore[import-not-found]
from tpch import JOINED, QUERIES, environment, warehouse  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("query_worker.py")
TIMEOUT_SECONDS = 300


@dataclass
class Cell:
    """What one engine took for one query, in seconds; ``problem`` if it did not answer."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    digest: str = ""
    problem: str = ""


def pythons(cache: Path, engines: list[str]) -> dict[str, Path]:
    """The Python that each engine runs in; this one unless the peer needs its own."""
    found = {engine: Path(sys.executable) for engine in engines}
    if "duckdb-iceberg" in found:
        found["duckdb-iceberg"] = environment(
            cache / "env-duckdb-iceberg",
            "duckdb==1.5.5",
            "duckdb-extension-iceberg==1.5.5",
            "duckdb-extension-avro==1.5.5",
        )
    return found


def run_worker(python: Path, engine: str, data: Path, query: str, runs: int) -> tuple[float, dict]:
    """Wall seconds of the whole process, and what it says. Raises RuntimeError."""
    command = [python, WORKER, engine, data, query, str(runs)]
    started = time.perf_counter()
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    wall = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:120])
    return wall, json.loads(done.stdout.splitlines()[-1])


def run_command(data: Path, query: str) -> float:
    """Wall seconds of `icesql -c`, as a user would type it."""
    command = [sys.executable, "-m", "icesql", "--uri", f"sqlite:///{data}/catalog.db"]
    started = time.perf_counter()
    subprocess.run(
        [*command, "--format", "csv", "-c", f"USE tpch; {QUERIES[query]}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return time.perf_counter() - started


def measure(data: Path, queries: list[str], engines: list[str], runs: int, cache: Path) -> dict:
    cells = {(engine, query): Cell() for engine in engines for query in queries}
    python = pythons(cache, engines)
    for query in queries:
        for engine in engines:
            cell = cells[engine, query]
            try:
                # One more run in front: the first one loads what later ones have.
                _, told = run_worker(python[engine], engine, data, query, runs + 1)
                cell.warm, cell.digest = told["seconds"][1:], told["digest"]
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                cell.problem = str(error)
        for _ in range(runs):
            for engine in engines:
                cell = cells[engine, query]
                if cell.problem:
                    continue
                if engine == "icesql":
                    cell.cold.append(run_command(data, query))
                else:
                    cell.cold.append(run_worker(python[engine], engine, data, query, 1)[0])
    return cells


def show(cells: dict[tuple[str, str], Cell], queries: list[str], engines: list[str]) -> None:
    for kind in ("cold", "warm"):
        print(f"\n{kind}, ms (median)")
        print("".join(f"{head:>10}" for head in ("", *queries)))
        for engine in engines:
            times = [_median(getattr(cells[engine, query], kind)) for query in queries]
            print(f"{engine:>14.14}" + "".join(_cell(time, 1000, ".0f") for time in times))
        for peer in engines:
            if peer == "icesql" or "icesql" not in engines:
                continue
            ratios = {query: _ratio(cells, kind, query, peer) for query in queries}
            mean = _geometric_mean([ratios[query] for query in queries if query in JOINED])
            line = "".join(_cell(ratios[query], 1, ".2f") for query in queries)
            print(f"{'/ ' + peer:>14.14}{line}   geometric mean of q*: {mean:.2f}")
    for query in queries:
        answers = {cells[engine, query].digest for engine in engines} - {""}
        if len(answers) > 1:
            told = ", ".join(f"{engine} {cells[engine, query].digest}" for engine in engines)
            print(f"DIFFERENT ANSWERS to {query}: {told}")
    for (engine, query), cell in cells.items():
        if cell.problem:
            print(f"{engine} {query}: {cell.problem}")


def _median(times: list[float]) -> float:
    return statistics.median(times) if times else math.nan


def _ratio(cells: dict[tuple[str, str], Cell], kind: str, query: str, peer: str) -> float:
    return _median(getattr(cells["icesql", query], kind)) / _median(
        getattr(cells[peer, query], kind)
    )


def _geometric_mean(ratios: list[float]) -> float:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return math.exp(statistics.fmean(map(math.log, known))) if known else math.nan


def _cell(value: float, factor: float, form: str) -> str:
    return f"{'-' if math.isnan(value) else format(value * factor, form):>10}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    queries, engines = options.queries.split(","), options.engines.split(",")
    data = warehouse(options.cache.resolve(), options.scale)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, scale {options.scale:g}")
    show(measure(data, queries, engines, options.runs, options.cache.resolve()), queries, engines)


if __name__ == "__main__":
    main()
