"""Measure icesql beside its peers.

    python tests/benchmarks NAME [--cache FOLDER] [--rounds N] [--only CASE,…] [--peers SIDE,…]
    python tests/benchmarks all [--cache FOLDER]

Without a name it lists the benchmarks, and ``NAME --help`` their options. The folder keeps tables and
the environments of peers, which are made with pip at the first run. A peer ``icesql@FOLDER`` is
the icesql of another checkout. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from process import ROOT

sys.path.append(str(ROOT))

from clients import clients
from commits import commits
from fetching import fetching
from maintenance import compaction, conversion
from planning import planning
from rooms import rooms
from selects import deletes, spark, tpcds, tpch, users
from starts import cold
from stores import stores
from writes import insert, merge

BENCHMARKS = (
    tpch, tpcds, users, deletes, cold, planning, stores, clients, fetching, insert, merge,
    commits, compaction, conversion, spark, rooms,
)  # fmt: skip


def main() -> int:
    named = {each.__name__: each for each in BENCHMARKS}
    folder = Path(tempfile.gettempdir()) / "icesql-benchmarks"
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="name")
    for name, benchmark in (named | {"all": everything}).items():
        about = (inspect.getdoc(benchmark) or "").replace("%", "%%")
        command = commands.add_parser(name, help=about.partition("\n")[0], description=about)
        command.add_argument("--cache", type=Path, default=folder)
        for each in [*inspect.signature(benchmark).parameters.values()][1:]:
            kind = type(each.default)
            command.add_argument(f"--{each.name}", type=kind, default=each.default)
    options = vars(parser.parse_args())
    name, cache = options.pop("name"), options.pop("cache", folder).resolve()
    if name is None:
        parser.print_help()
        return 0
    cache.mkdir(parents=True, exist_ok=True)
    print(f"{name}: Python {platform.python_version()}, {os.cpu_count()} cores")
    return (named | {"all": everything})[name](cache, **options)


def everything(cache: Path) -> int:
    """All of them, one after the other: hours, and some GB."""
    words = [sys.executable, str(Path(__file__).parent)]
    failed = [
        each.__name__
        for each in BENCHMARKS
        if subprocess.run([*words, each.__name__, "--cache", str(cache)], check=False).returncode
    ]
    print(f"failed: {', '.join(failed)}" if failed else "all of them ran")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
