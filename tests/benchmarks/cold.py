"""One command in a fresh process: `icesql -c` against DuckDB with its iceberg extension.

    python tests/benchmarks/cold.py CACHE [--scale 1] [--pairs 9] [--cases count,q6]

CACHE keeps the data and the environment of the peer, a Python script that loads the extension and
answers the same query; `--help` and `--version` stand against a Python that does nothing. Figures
are CPU (user and system) of the whole process, since wall time tells more about what else the
machine does. Runs of a pair follow each other, and ratios are medians over the pairs: below 1
icesql is faster. A DuckDB CLI, where one is installed, stands beside it. A peer that is not installed
or does not answer is said so and left out.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from query_worker import metadata_files  # type: ignore[import-not-found]
from tpch import QUERIES, environment, warehouse  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 120

PEER = """\
import sys
import duckdb
if len(sys.argv) == 2:
    con = duckdb.connect()
else:
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for extension in sys.argv[2:]:
        con.execute(f"LOAD '{extension}'")
for row in con.execute(sys.argv[1]).fetchall():
    print(*row, sep=",")
"""

CASES = {
    "select 1": "SELECT 1",
    "count": QUERIES["count"],
    "q6": QUERIES["q6"],
    "point": QUERIES["point"],
    "point csv": QUERIES["point"],
}
BARE = ("--help", "--version")


@dataclass
class Line:
    """CPU seconds of one case, run by run; ``problems`` of peers that gave no figure."""

    icesql: list[float] = field(default_factory=list)
    peers: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def cpu(command: Sequence[object]) -> tuple[float, str]:
    """CPU seconds of a process and what it printed. Raises RuntimeError."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [str(part) for part in command],
        env={**own, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def peers_of(case: str, data: Path, cache: Path) -> dict[str, list[object] | str]:
    """The commands that answer a case in other engines, or why there is none."""
    if case in BARE:
        return {"python -c pass": [sys.executable, "-c", "pass"]}
    sql, extensions = CASES[case], []
    found: dict[str, list[object] | str] = {}
    names = [] if case == "select 1" else ["avro", "iceberg"]
    if names:
        sql = sql.replace("lineitem", f"iceberg_scan('{metadata_files(data)['lineitem']}')")
    try:
        python = environment(
            cache / "env-duckdb-iceberg",
            "duckdb==1.5.5",
            "duckdb-extension-iceberg==1.5.5",
            "duckdb-extension-avro==1.5.5",
        )
        site = python.parents[1].resolve()
        extensions = [
            next(site.glob(f"lib/**/duckdb_extension_{name}/**/*.duckdb_extension"))
            for name in names
        ]
        found["duckdb in python"] = [python, "-c", PEER, sql, *extensions]
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        found["duckdb in python"] = f"not installed ({type(error).__name__})"
    cli = shutil.which("duckdb")
    if cli is None:
        found["duckdb cli"] = "not installed"
    else:
        loads = "".join(f"LOAD '{path}'; " for path in extensions)
        found["duckdb cli"] = [cli, "-unsigned", "-csv", "-c", loads + sql]
    return found


def command(case: str, data: Path) -> list[object]:
    start: list[object] = [sys.executable, "-m", "icesql"]
    if case in BARE:
        return [*start, case]
    sql = CASES[case].replace("lineitem", "tpch.lineitem")
    if case.endswith(" csv"):
        start += ["--format", "csv"]
    return [*start, "--uri", f"sqlite:///{data}/catalog.db", "-c", sql]


def measure(case: str, data: Path, cache: Path, pairs: int) -> Line:
    line = Line()
    commands: dict[str, list[object]] = {}
    for name, peer in peers_of(case, data, cache).items():
        if isinstance(peer, str):
            line.problems[name] = peer
        else:
            commands[name] = peer
    own = command(case, data)
    cpu(own)  # byte code and the page cache
    for name in list(commands):
        try:
            cpu(commands[name])
        except (RuntimeError, OSError) as error:
            line.problems[name] = str(error)
            del commands[name]
    for _ in range(pairs):
        for name, peer in commands.items():
            line.peers.setdefault(name, []).append(cpu(peer)[0])
        line.icesql.append(cpu(own)[0])
    return line


def show(case: str, line: Line) -> None:
    print(f"{case:>12}{_ms(line.icesql):>10}", end="")
    for name, seconds in line.peers.items():
        ratios = [own / peer for own, peer in zip(line.icesql, seconds, strict=True)]
        more = statistics.median(own - peer for own, peer in zip(line.icesql, seconds, strict=True))
        print(f"   {name} {_ms(seconds)}, ratio {statistics.median(ratios):.2f}", end="")
        print(f", {more * 1000:+.0f} ms" if case in BARE else "", end="")
    for name, problem in line.problems.items():
        print(f"   {name}: {problem}", end="")
    print(flush=True)


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f}" if seconds else str(math.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--cases", default=",".join((*BARE, *CASES)))
    options = parser.parse_args()
    cache = options.cache.resolve()
    data = warehouse(cache, options.scale)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, scale {options.scale:g}")
    print(f"{'CPU ms':>12}{'icesql':>10}   peers")
    for case in options.cases.split(","):
        show(case, measure(case, data, cache, options.pairs))


if __name__ == "__main__":
    main()
