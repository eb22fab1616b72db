"""Deletes on lineitem: icesql against DuckDB's bare anti join over the same files, in one run.

    python tests/benchmarks/deletes.py CACHE [--scale 1] [--runs 7] [--only positions,…]

Both read the data and the delete files in each run and are interleaved; "again" is one connection
used for all runs, "fresh" a new one for each. The bare form is one statement with read_parquet over
both and an ANTI JOIN; for deletion vectors, which it cannot read, the same rows as position delete
files. Then the time per commit of a stream of upserts, and memory under a limit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import duckdb

import icesql
from tests.benchmarks import delete_tables

LIMITED = {"memory_limit": "256MB", "delete_memory_limit": "256MB"}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = function()
    return time.perf_counter() - started, answer


def cpu_timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, CPU seconds of all threads, and the answer."""
    started = time.process_time()
    took, answer = timed(function)
    return took, time.process_time() - started, answer


def bare_fresh(case: delete_tables.Case) -> Any:
    with duckdb.connect() as con:
        return con.execute(case.bare_sql()).fetchall()


def icesql_fresh(case: delete_tables.Case, settings: dict[str, Any]) -> Any:
    with icesql.connect(settings=settings) as con:
        con.register_table("t", case.metadata)
        return con.execute(case.query).fetchall()


def compare(case: delete_tables.Case, runs: int) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds of each run; raises AssertionError when the answers differ."""
    seconds: dict[str, list[tuple[float, float]]] = {
        "bare": [],
        "icesql": [],
        "bare fresh": [],
        "icesql fresh": [],
    }
    bare = duckdb.connect()
    with icesql.connect() as con:
        con.register_table("t", case.metadata)
        ways = {
            "bare": lambda: bare.execute(case.bare_sql()).fetchall(),
            "icesql": lambda: con.execute(case.query).fetchall(),
            "bare fresh": lambda: bare_fresh(case),
            "icesql fresh": lambda: icesql_fresh(case, {}),
        }
        for run in range(runs + 1):
            answers = set()
            for name, way in ways.items():
                took, cpu, answer = cpu_timed(way)
                answers.add(str(answer))
                if run:  # the first one loads what later ones have
                    seconds[name].append((took, cpu))
            assert len(answers) == 1, answers
    bare.close()
    return seconds


def show_cases(cache: Path, scale: float, runs: int, only: set[str]) -> None:
    heads = f"{'bare':>8}{'icesql':>8}{'ratio':>7}{'of CPU':>8}"
    print(f"{'ms, median':>14}{heads}   fresh:{heads}")
    for name, case in delete_tables.lineitem_cases(cache, scale).items():
        if only and name not in only:
            continue
        seconds = compare(case, runs)
        again = _columns(seconds["bare"], seconds["icesql"])
        fresh = _columns(seconds["bare fresh"], seconds["icesql fresh"])
        print(f"{name:>14}{again}{'':>9}{fresh}", flush=True)


def _columns(bare: list[tuple[float, float]], ours: list[tuple[float, float]]) -> str:
    theirs, their_cpu = (statistics.median(times) * 1000 for times in zip(*bare, strict=True))
    wall, cpu = (statistics.median(times) * 1000 for times in zip(*ours, strict=True))
    return f"{theirs:>8.0f}{wall:>8.0f}{wall / theirs:>7.2f}{cpu / their_cpu:>8.2f}"


def show_stream(cache: Path, runs: int) -> None:
    medians = {}
    for commits in (50, 500):
        metadata, count = delete_tables.upsert_stream(cache, commits)
        times = []
        with icesql.connect() as con:
            con.register_table("t", metadata)
            for run in range(runs + 1):
                took, answer = timed(lambda: con.execute("SELECT count(v) FROM t").fetchall())
                assert answer == [(count,)], (answer, count)
                if run:
                    times.append(took)
        medians[commits] = statistics.median(times)
        print(f"upserts of {commits} commits: {medians[commits] * 1000:.0f} ms")
    print(f"time per commit, 500 against 50: {medians[500] / 500 / (medians[50] / 50):.2f}")


def show_memory(cache: Path, scale: float, runs: int) -> None:
    metadata = delete_tables.ten_million_keys(cache, scale)
    found: dict[bool, list[tuple[float, int]]] = {False: [], True: []}
    for _ in range(runs):
        for limited in (False, True):
            command = [sys.executable, __file__, "--worker", metadata, json.dumps(limited)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[limited].append(tuple(json.loads(done.stdout.splitlines()[-1])))
    for limited, measured in found.items():
        seconds = statistics.median(took for took, _ in measured)
        peak = max(size for _, size in measured)
        label = "under 256 MB" if limited else "no limit"
        print(f"ten million keys, {label}: {seconds * 1000:.0f} ms, peak RSS {peak} MiB")


def worker(metadata: str, limited: bool) -> None:
    case = delete_tables.Case(metadata, delete_tables.SUM, [], [], "")
    took, _ = timed(lambda: icesql_fresh(case, LIMITED if limited else {}))
    # Not ru_maxrss, which starts at the size of the process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps([took, int(peak.split()[1]) // 1024]))


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cache, only = options.cache.resolve(), {each for each in options.only.split(",") if each}
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, scale {options.scale:g}")
    show_cases(cache, options.scale, options.runs, only)
    if not only or "upserts" in only:
        show_stream(cache, options.runs)
    if not only or "memory" in only:
        show_memory(cache, options.scale, min(options.runs, 3))


if __name__ == "__main__":
    main()
