"""Engines side by side on the same queries: a process for each engine and query, runs in turn.

The processes of one query live together, and every round asks each of them once, beginning with
another one each time: what else the machine does meets them all. Figures are the least wall time
and CPU (user and system, in seconds) of the rounds after the first two, and ratios are icesql
divided by the peer, below 1 where icesql is faster.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from tpch import environment  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("paired_worker.py")
FIRST_ROUNDS = 2
_SECONDS = 120
EXTENSION = ("duckdb==1.5.5", "duckdb-extension-iceberg==1.5.5", "duckdb-extension-avro==1.5.5")


def pythons(cache: Path, engines: Iterable[str]) -> dict[str, Path]:
    """The Python that each engine runs in; this one unless the peer needs its own."""
    found = {engine: Path(sys.executable) for engine in engines}
    if "duckdb-iceberg" in found:
        found["duckdb-iceberg"] = environment(cache / "env-duckdb-iceberg", *EXTENSION)
    if "polars" in found:
        found["polars"] = environment(
            cache / "env-polars", "polars", "polars-iceberg", "pyiceberg", "pyarrow"
        )
    return found


@dataclass
class Runs:
    """What the rounds of one engine and query took; ``problem`` if it gave no answer."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    digest: str = ""
    problem: str = ""

    def least(self, kind: str) -> float:
        """The least of the rounds that count; NaN if there is none."""
        return min(getattr(self, kind)[FIRST_ROUNDS:], default=math.nan)


class Worker:
    """The process of one engine and query."""

    def __init__(self, python: Path, engine: str, given: Mapping[str, Any]) -> None:
        self.runs = Runs()
        self._process = subprocess.Popen(
            [str(python), str(WORKER), engine],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._write(json.dumps(given))

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def run(self) -> None:
        if self.runs.problem:
            return
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.start()
        try:
            self._write("")
            assert self._process.stdout is not None
            told = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            self._process.kill()
            lines = self._process.communicate()[1].strip().splitlines()
            self.runs.problem = (lines or [f"no answer in {_SECONDS} s"])[-1][:160]
            return
        finally:
            timer.cancel()
        self.runs.wall.append(told["wall"])
        self.runs.cpu.append(told["cpu"])
        self.runs.digest = told["digest"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def measure(
    givens: Mapping[str, Mapping[str, Any]], places: Mapping[str, Path], rounds: int
) -> dict[str, Runs]:
    """One query: what each engine took. ``givens`` is what each engine's worker is told."""
    workers = {name: Worker(places[name], name, given) for name, given in givens.items()}
    order = [*workers.values()]
    try:
        for number in range(rounds + FIRST_ROUNDS):
            turn = number % len(order)
            for worker in (*order[turn:], *order[:turn]):
                worker.run()
    finally:
        for worker in order:
            worker.close()
    return {name: worker.runs for name, worker in workers.items()}


class Table:
    """Prints a line for each query and, at the end, geometric means of the ratios."""

    def __init__(self, engines: Iterable[str], goals: Mapping[str, float]) -> None:
        self._peers = [name for name in engines if name != "icesql"]
        self._goals = goals
        self._ratios: dict[str, dict[str, dict[str, float]]] = {
            name: {"wall": {}, "cpu": {}} for name in self._peers
        }
        heads = "".join(f"{name:>16}{'/ wall':>8}{'/ CPU':>7}" for name in self._peers)
        print(f"{'ms, least':12}{'icesql':>8}{heads}")

    def line(self, query: str, runs: Mapping[str, Runs], *, apart: Iterable[str] = ()) -> None:
        """Prints one query, with a word on answers that differ and peers that gave none.

        Answers of the peers ``apart`` may differ.
        """
        own = runs["icesql"]
        text = f"{query:12}{own.least('wall') * 1000:8.1f}"
        for peer in self._peers:
            theirs = runs.get(peer, Runs())
            shown = []
            for kind in ("wall", "cpu"):
                ratio = own.least(kind) / (theirs.least(kind) or math.nan)
                if not math.isnan(ratio) and ratio > 0:
                    self._ratios[peer][kind][query] = ratio
                shown.append(ratio)
            text += f"{theirs.least('wall') * 1000:16.1f}{shown[0]:8.2f}{shown[1]:7.2f}"
        print(text, flush=True)
        told = {each.digest for name, each in runs.items() if name not in apart}
        if len(told - {""}) > 1:
            print("  ANSWERS DIFFER: " + ", ".join(f"{n} {r.digest}" for n, r in runs.items()))
        for name, each in runs.items():
            if each.problem:
                print(f"  {name}: {each.problem}")

    def end(self) -> None:
        """Prints the geometric means, the worst queries and the goals."""
        for peer in self._peers:
            for kind, ratios in self._ratios[peer].items():
                if not ratios:
                    continue
                mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
                worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:4]
                named = ", ".join(f"{query} {ratios[query]:.2f}" for query in worst)
                goal = f" (goal {self._goals[peer]})" if peer in self._goals else ""
                print(
                    f"to {peer}, {kind}: geometric mean {mean:.2f}{goal} of {len(ratios)}; {named}"
                )
