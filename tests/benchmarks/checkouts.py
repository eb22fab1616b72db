"""Two checkouts of icesql against each other: TPC-H, warm, the runs in pairs.

    python tests/benchmarks/checkouts.py CACHE OLD NEW [--scale 1] [--runs 7] [--queries 1,6]

OLD and NEW are folders that hold the package ``icesql``. One process for each stays up; a query runs
in the one, then in the other, and again, so that a machine whose speed drifts slows both. A ratio is
the median over the pairs of NEW divided by OLD: below 1 the new one is faster. The rows are compared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from tpcds import warehouse  # type: ignore[import-not-found]

SERVE = """
import hashlib, json, sys, time
import icesql
connection = icesql.connect(warehouse=sys.argv[1])
connection.execute("USE ds")
for line in sys.stdin:
    started = time.perf_counter()
    rows = connection.execute(json.loads(line)).fetchall()
    seconds = time.perf_counter() - started
    shown = sorted(repr([f"{v:.9g}" if isinstance(v, float) else v for v in row]) for row in rows)
    print(json.dumps([seconds, hashlib.md5("".join(shown).encode()).hexdigest()]), flush=True)
"""


class Checkout:
    """A process that answers queries with the icesql of one folder."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(folder.resolve())},
            cwd=data,
        )

    def run(self, sql: str) -> tuple[float, str]:
        """Seconds from ``execute`` to the last row, and a digest of the rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(sql), file=self._process.stdin, flush=True)
        seconds, digest = json.loads(self._process.stdout.readline())
        return seconds, digest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--queries", default="")
    arguments = parser.parse_args()
    data, queries = warehouse(arguments.cache, "tpch", arguments.scale)
    wanted = [each for each in arguments.queries.split(",") if each] or sorted(queries, key=int)
    sides: list[Any] = [Checkout(folder, data) for folder in (arguments.old, arguments.new)]
    ratios, failures = [], 0
    print(f"{'query':>5} {'old ms':>8} {'new ms':>8} {'new / old':>10}")
    for number in wanted:
        pairs, digests = [], set()
        for index in range(arguments.runs + 2):  # the first two pairs warm up
            found = [side.run(queries[number]) for side in sides]
            digests |= {digest for _, digest in found}
            if index >= 2:
                pairs.append([seconds for seconds, _ in found])
        ratio = statistics.median(new / old for old, new in pairs)
        ratios.append(ratio)
        old, new = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
        failures += len(digests) != 1
        note = "" if len(digests) == 1 else "  the rows differ"
        print(f"{number:>5} {old:8.1f} {new:8.1f} {ratio:10.2f}{note}", flush=True)
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"geometric mean of {len(ratios)}: {mean:.3f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
