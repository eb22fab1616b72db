"""Measurement: ways to do the same take turns in one run, and their medians are divided.

A way is a call that measures one run, of a side's process or of a command from start to exit. The
first way of a line is the one in question, the others are its peers: ratios are its median divided
by theirs, below 1 where it needs less.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from process import HERE, ROOT

Taken = dict[str, Any]
Way = Callable[[], Taken | None]
_NUMBERS = ("wall", "cpu", "peak", "rows")


def command(words: Sequence[object], root: Path = ROOT) -> Taken:
    """Measure one process from start to exit, with the icesql of a checkout."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root, HERE)))}
    # Modules are compiled once, as where they are installed.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        list(map(str, words)), env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )  # fmt: skip
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return {"error": "exit", "text": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}


def turns(ways: Mapping[str, Way], rounds: int, warm: int = 2) -> dict[str, list[Taken]]:
    """Call each way once a round, beginning with another one each time; ``warm`` rounds do not count.

    A way that fails is not called again: its error is all that is left of it.
    """
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for number in range(warm + rounds):
        names = [*ways][number % len(ways) :] + [*ways][: number % len(ways)]
        for name in names:
            if failure(taken[name]) is None:
                taken[name].append(attempted(ways[name]))
    return {name: each if failure(each) else each[warm:] for name, each in taken.items()}


def attempted(way: Way) -> Taken:
    try:
        return way() or {"error": "Ended", "text": "the process ended"}
    except (TimeoutError, RuntimeError) as error:
        return {"error": type(error).__name__, "text": str(error)}


def failure(runs: Sequence[Taken]) -> str | None:
    failed = (f"{each['error']}: {each['text'][:160]}" for each in runs if "error" in each)
    return next(failed, None)


class Table:
    """A table of cases and ways, printed line by line, and in the end the means of the ratios."""

    def __init__(self) -> None:
        self.is_wrong = False
        self._ratios: dict[tuple[str, str], dict[str, float]] = {}

    def line(
        self, case: str, taken: Mapping[str, Sequence[Taken]], *, apart: Collection[str] = ()
    ) -> None:
        """A line for each way; the rows of the peers ``apart`` may differ."""
        first, *peers = taken
        for name, runs in taken.items():
            problem = failure(runs)
            text = problem or "  ".join(
                f"{kind} {1000 * median(runs, kind):9.1f} ms{self._ratio(case, kind, name, taken)}"
                for kind in ("wall", "cpu")
            )
            if problem is None:
                more = {key: median(runs, key) for key in runs[0] if key not in _NUMBERS}
                if "peak" in runs[0]:
                    more = {"MB": max(each["peak"] for each in runs), **more}
                text += "".join(f"  {key} {value:,.4g}" for key, value in more.items())
            print(f"{case:<16} {name:<12} {text}", flush=True)
        problem = failure(taken[first])
        self.is_wrong |= problem is not None
        for name in set(peers) - set(apart):
            if problem is None and failure(taken[name]) is None:
                difference = different(taken[first][-1], taken[name][-1])
                self.is_wrong |= bool(difference)
                print(f"{case}: {name} DIFFERS: {difference}\n" if difference else "", end="")

    def _ratio(self, case: str, kind: str, name: str, taken: Mapping[str, Any]) -> str:
        first = next(iter(taken))
        if name == first or failure(taken[first]):
            return " " * 8
        ratio = median(taken[first], kind) / max(median(taken[name], kind), 1e-9)
        self._ratios.setdefault((name, kind), {})[case] = max(ratio, 1e-9)
        return f" ({ratio:5.2f})"

    def end(self) -> int:
        """Print the means; 1 if rows differ, or what is measured failed."""
        for (name, kind), ratios in self._ratios.items():
            mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
            worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:4]
            named = ", ".join(f"{case} {ratios[case]:.2f}" for case in worst)
            print(f"to {name}, {kind}: geometric mean {mean:.3f} of {len(ratios)}; {named}")
        return int(self.is_wrong)


def median(runs: Sequence[Taken], kind: str) -> float:
    return statistics.median(each[kind] for each in runs)


def different(ours: Taken, theirs: Taken) -> str:
    """Describe how the rows of two runs differ; averages compare to Spark's six digits."""
    from tests.board.judge import verdict

    expected = [
        [json.dumps(cell) if isinstance(cell, (list, dict)) else _rough(cell) for cell in row]
        for row in ours.get("rows", ())
    ]
    if "rows" not in theirs:
        return ""
    rows = [list(map(_rough, row)) for row in theirs["rows"]]
    return verdict(expected, {"rows": rows})[1][:300]


def _rough(cell: Any) -> Any:
    try:
        return f"{float(cell):.6f}"
    except (TypeError, ValueError):
        return cell
