"""Damage real tables by the thousand and count what comes of it, by kind.

    python tests/damage/campaign.py --damages 50000 --seed 1 [--corpus FOLDER ...] [--out FILE]

Each damage is done to a copy of a table, which is then asked three queries. Counted are crashes,
hangs, foreign exceptions, errors that name no file, wrong rows, and cases over 10 s or 1 GB. A run
that is stopped can be continued with ``--first``. Exits with 1 when something must not be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.damage.process import Process

SLOW_SECONDS, MOST_BYTES, BIGGEST = 10, 1 << 30, 3 << 20
# What no query may end in. Wrong rows of these kinds would be seen if anybody looked.
NEVER = ("crash", "hang", "foreign", "dead", "slow", "fat")
VISIBLE = (
    "record twice",
    "record 300 times",
    "footer.3",
    "footer.4",
    "footer.4.*.3",
    "page.5.1",
    "page.8.1",
)


def jobs(metadata_files, healthy, seeds):
    """A job for each seed, those of a table next to each other."""
    made = [
        {
            "metadata": metadata_files[seed % len(metadata_files)],
            "healthy": healthy,
            "seed": seed,
            "structured": True,
        }
        for seed in seeds
    ]
    return sorted(made, key=lambda job: (job["metadata"], job["seed"]))


def tables_of(corpus):
    """Metadata files of the small tables of a corpus that can be read in full."""
    rows = [json.loads(line) for line in (corpus / "tables.jsonl").read_text().splitlines()]
    return [
        str(newest_metadata(corpus, row))
        for row in rows
        if row.get("usability", "full") == "full" and size(corpus / row["table"]) <= BIGGEST
    ]


def newest_metadata(corpus, row):
    """The metadata file that a row of tables.jsonl names, else the last of the table's."""
    if "metadata" in row:
        return corpus / row["metadata"]
    from icesql.catalog.open import open_table

    return open_table(str(corpus / row["table"])).metadata_location


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def verdicts(outcome):
    """The verdict of each query of a damage, and what its time and memory were."""
    found = [each[0] for each in outcome["results"]]
    if outcome.get("seconds", 0) > SLOW_SECONDS:
        found.append("slow")
    if outcome.get("peak", 0) > MOST_BYTES:
        found.append("fat")
    return found


def is_problem(outcome, verdict):
    """Whether a verdict must not be: a wrong answer only where the damage could be seen."""
    if verdict == "wrong":
        return outcome.get("what") in VISIBLE
    return verdict in NEVER


def run(todo, processes, until, told):
    """The outcomes of jobs in so many processes; ``told`` gets each."""

    def share(number):
        process = Process()
        try:
            for job in todo[number::processes]:
                if until is not None and time.monotonic() > until:
                    return
                told(job, process.ask(job))
        finally:
            process.close()

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(share, range(processes)))


class Counts:
    """Verdicts by kind of damage, wrong rows by what was changed, and every problem."""

    def __init__(self, out):
        self.damages, self.problems, self.out = 0, [], out
        self.by_kind, self.wrong, self.unnamed = Counter(), Counter(), Counter()
        self.seconds = self.peak = 0.0

    def add(self, job, outcome):
        self.damages += 1
        kind = f"{outcome.get('role', '?')}: {outcome.get('kind', '?')}"
        for verdict in verdicts(outcome):
            self.by_kind[kind, verdict] += 1
            if verdict == "wrong":
                self.wrong[f"{outcome['role']}: {outcome['what']}"] += 1
            if verdict == "unnamed":
                self.unnamed[f"{outcome['role']}: {outcome['what']}"] += 1
            if is_problem(outcome, verdict):
                self.problems.append((verdict, job, outcome))
        self.seconds = max(self.seconds, outcome.get("seconds", 0))
        self.peak = max(self.peak, outcome.get("peak", 0))
        if self.out is not None:
            self.out.write(json.dumps({"job": job, **outcome}) + "\n")

    def report(self):
        kinds = sorted({kind for kind, _ in self.by_kind})
        names = sorted({verdict for _, verdict in self.by_kind})
        print(f"{self.damages} damages, slowest {self.seconds:.1f} s, ", end="")
        print(f"most memory {self.peak / (1 << 20):.0f} MB")
        print(f"{'':24}" + "".join(f"{name:>9}" for name in names))
        for kind in kinds:
            print(f"{kind:24}" + "".join(f"{self.by_kind[kind, name]:9}" for name in names))
        total = Counter()
        for (_, verdict), count in self.by_kind.items():
            total[verdict] += count
        print(f"{'all':24}" + "".join(f"{total[name]:9}" for name in names))
        for title, counts in (("wrong rows", self.wrong), ("no file named", self.unnamed)):
            print(f"{title}, queries by what was changed:")
            for what, count in counts.most_common(25):
                print(f"  {count:6} {what}")
        for verdict, job, outcome in self.problems[:40]:
            told = [each for each in outcome["results"] if each[0] == verdict]
            print("PROBLEM", verdict, job["seed"], job["metadata"], outcome["damage"], told[:1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--damages", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="how many of the series were done")
    parser.add_argument("--corpus", nargs="*", default=[os.environ.get("ICESQL_CORPUS", "")])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--out", help="write every outcome here, one JSON object a line")
    given = parser.parse_args()
    tables = [each for corpus in given.corpus for each in tables_of(Path(corpus))]
    begin = given.seed * 1_000_000_000 + given.first
    todo = jobs(tables, tables[0], range(begin, begin + given.damages))
    until = None if given.seconds is None else time.monotonic() + given.seconds
    out = open(given.out, "a", encoding="utf-8") if given.out else None  # noqa: SIM115
    counts = Counts(out)
    run(todo, given.processes, until, counts.add)
    counts.report()
    sys.exit(1 if counts.problems else 0)


if __name__ == "__main__":
    main()
