"""Damage real tables by the thousand, and count the outcomes by kind.

    python tests/campaigns damage CORPUS … [--damages 50000] [--seed 1] [--seconds S] [--out F]

Each damage is done to a copy of a table, on which three queries then run. Counted are crashes,
hangs, foreign exceptions, errors that name no file, wrong rows, and cases over 10 s or 1 GB. A
stopped run continues with ``--first``: the number of finished cases.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.process import Side, answers

WORKER = "tests.damage.worker:opened"
# The wall time after which a process that waits counts as hanging; SLOW_SECONDS are the processor's.
SECONDS, SLOW_SECONDS, MOST_BYTES, BIGGEST = 1_200, 10, 1 << 30, 3 << 20
# No query may end like this. Wrong rows after damage of these kinds are detectable.
NEVER = ("crash", "hang", "foreign", "dead", "slow", "fat")
VISIBLE = ("record twice", "record 300 times", "footer.3", "footer.4", "footer.4.*.3", "page.5.1",
           "page.8.1")  # fmt: skip
Json = dict[str, Any]


def jobs(tables: list[str], healthy: str, seeds: Iterable[int], structured: bool) -> list[Json]:
    """A job for each seed; jobs on the same table are neighbours."""
    more = {"healthy": healthy, "structured": structured}
    made = [{"metadata": tables[seed % len(tables)], "seed": seed, **more} for seed in seeds]
    return sorted(made, key=lambda job: (job["metadata"], job["seed"]))


def tables_of(corpus: Path) -> Iterator[str]:
    """Metadata files of the small tables of a corpus that can be read in full."""
    from icesql.catalog.open import open_table

    for line in (corpus / "tables.jsonl").read_text(encoding="utf-8").splitlines():
        row, folder = json.loads(line), corpus / json.loads(line)["table"]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if row.get("usability", "full") == "full" and size <= BIGGEST:
            named = "metadata" in row
            yield str(
                corpus / row["metadata"] if named else open_table(str(folder)).metadata_location
            )


def run(
    todo: list[Json], processes: int, told: Callable[[Json, Json], None], until: float = math.inf
) -> None:
    """Run the jobs in ``processes`` processes, and pass each with its outcome to ``told``."""

    def share(number: int) -> None:
        ends = (len(todo) * each // processes for each in (number, number + 1))
        jobs = todo[slice(*ends)]  # those of a table together
        with tempfile.TemporaryDirectory() as folder:
            opening = partial(Side, WORKER, {"folder": folder}, seconds=SECONDS)
            for job, (_, answer) in zip(jobs, answers(opening, jobs), strict=False):
                told(job, _outcome(job, answer))
                if time.monotonic() > until:
                    return

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(share, range(processes)))


def _outcome(job: Json, answer: Json | TimeoutError | None) -> Json:
    if isinstance(answer, dict) and "error" not in answer:
        return answer
    verdict = "hang" if isinstance(answer, TimeoutError) else "crash"
    return {"damage": str(job), "results": [[verdict, str(answer), "", ""]]}


class Counts:
    """Verdicts by kind of damage, wrong rows by what was changed, and every problem."""

    def __init__(self, out: Path | None = None) -> None:
        self.problems: list[tuple[str, Json, Json]] = []
        self.by_kind: Counter[tuple[str, str]] = Counter()
        self.by_change: Counter[tuple[str, str]] = Counter()
        self.damages, self._out = 0, out

    def add(self, job: Json, outcome: Json) -> None:
        self.damages += 1
        role, what = outcome.get("role", "?"), outcome.get("what")
        found = [each[0] for each in outcome["results"]]
        found += ["slow"] * (outcome.get("seconds", 0) > SLOW_SECONDS)
        found += ["fat"] * (outcome.get("peak", 0) > MOST_BYTES)
        for verdict in found:
            self.by_kind[f"{role}: {outcome.get('kind', '?')}", verdict] += 1
            if verdict in ("wrong", "unnamed"):
                self.by_change[verdict, f"{role}: {what}"] += 1
            # A wrong answer counts only if the damage was detectable.
            if verdict in NEVER or (verdict == "wrong" and what in VISIBLE):
                self.problems.append((verdict, job, outcome))
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": job, **outcome}) + "\n")

    def report(self) -> None:
        kinds = Counter(self.by_kind)
        for (_, verdict), count in self.by_kind.items():
            kinds["~ all", verdict] += count
        names = sorted({verdict for _, verdict in kinds})
        print(f"{self.damages} damages\n{'':24}" + "".join(f"{name:>9}" for name in names))
        for kind in sorted({kind for kind, _ in kinds}):
            print(f"{kind:24}" + "".join(f"{kinds[kind, name]:9}" for name in names))
        for (verdict, what), count in self.by_change.most_common(50):
            print(f"  {count:6} {verdict} {what}")
        for verdict, job, outcome in self.problems[:40]:
            told = [each for each in outcome["results"] if each[0] == verdict]
            print("PROBLEM", verdict, job["seed"], job["metadata"], outcome["damage"], told[:1])


def main(
    corpus: tuple[Path, ...] = (Path(os.environ.get("ICESQL_CORPUS", ".")),), *, damages: int = 50_000, seed: int = 1, first: int = 0,
    processes: int = 2, seconds: float = math.inf, out: str = "",
) -> int:  # fmt: skip
    """Damage tables of some folders ``damages`` times; return the number of problems."""
    tables = [table for each in corpus for table in tables_of(each)]
    begin = seed * 1_000_000_000 + first
    counts = Counts(Path(out) if out else None)
    todo = jobs(tables, tables[0], range(begin, begin + damages), True)
    run(todo, processes, counts.add, time.monotonic() + seconds)
    counts.report()
    return len(counts.problems)
