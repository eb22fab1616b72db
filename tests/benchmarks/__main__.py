"""Measure icesql beside its peers.

    python tests/benchmarks NAME [--cache FOLDER] [--rounds N] [--only CASE,…] [--peers SIDE,…]
    python tests/benchmarks all [--cache FOLDER]

Without a name it lists the benchmarks, and ``NAME --help`` their options. The folder keeps tables and
the environments of peers, which are made with pip at the first run. A peer ``icesql@FOLDER`` is
the icesql of another checkout. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import inspect
import os
import platform
import subprocess
import sys
from functools import wraps
from pathlib import Path
from typing import Any

from process import ROOT

sys.path.append(str(ROOT))

from commits import commits
from cursors import clients, fetching
from maintenance import compaction, conversion
from planning import planning
from rooms import rooms
from selects import deletes, spark, stages, tpcds, tpch, users
from starts import cold
from stores import stores
from tables import CACHE
from writes import insert, merge

from tests.commands import Main, run

BENCHMARKS: tuple[Main, ...] = (
    tpch, tpcds, users, deletes, cold, planning, stores, clients, fetching, insert, merge,
    commits, compaction, conversion, spark, stages, rooms,
)  # fmt: skip


def everything(cache: Path = CACHE) -> int:
    """All of them, one after the other: hours, and some GB."""
    words = [sys.executable, str(Path(__file__).parent)]
    failed = [
        each.__name__
        for each in BENCHMARKS
        if subprocess.run([*words, each.__name__, "--cache", str(cache)], check=False).returncode
    ]
    print(f"failed: {', '.join(failed)}" if failed else "all of them ran")
    return int(bool(failed))


NAMED = {**{each.__name__: each for each in BENCHMARKS}, "all": everything}


def load(name: str) -> tuple[Main, str | None]:
    """The function of a benchmark, and its text."""
    benchmark = NAMED[name]

    @wraps(benchmark)
    def measured(cache: Path, *options: Any) -> object:
        cache.mkdir(parents=True, exist_ok=True)
        print(f"{name}: Python {platform.python_version()}, {os.cpu_count()} cores")
        return benchmark(cache.resolve(), *options)

    return measured, inspect.getdoc(benchmark)


if __name__ == "__main__":
    about = {name: (inspect.getdoc(each) or "").partition("\n")[0] for name, each in NAMED.items()}
    sys.exit(run(__doc__, about, load, sys.argv[1:], options=True))
