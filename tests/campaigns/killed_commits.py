"""Kill writers at random moments: the table always reads, as before a commit or as after it.

    python tests/campaigns/killed_commits.py [--kind directory|sqlite] [--kills 200] [--seed 1]

A writer appends, replaces and merges in one process, noting each commit that it knows to be done;
another kills it with SIGKILL after a random time. Then the table is read: everything that was
noted is there, nothing is there twice, and the next writer goes on. What a killed writer leaves are
files that no snapshot names; they never look like metadata of the table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

PROPERTIES = {
    "commit.manifest.min-count-to-merge": "4",
    "write.metadata.previous-versions-max": "5",
    "commit.retry.num-retries": "20",
}


def opened(kind: str, folder: Path):
    from tests.campaigns.concurrent_commits import opened as same

    return same(kind, folder)


def write(kind: str, folder: Path, run: int, noted: str) -> None:
    """Commit until killed; each name is noted after its commit came back."""
    from icesql.commit.append import commit_append
    from icesql.commit.change import change_table
    from icesql.commit.rows import commit_overwrite
    from icesql.iceberg.metadata.changes.updates import RemoveSnapshots
    from tests.campaigns.concurrent_commits import old
    from tests.commit.tables import fake
    from tests.commit.test_rows import in_table

    catalog = opened(kind, folder)
    with open(noted, "a", encoding="utf-8") as notes:

        def note(word: str) -> None:
            notes.write(f"{word}\n")
            notes.flush()

        note(f"start {run}")
        number = 0
        while True:
            table = catalog.load(("ns", "t"))
            name = f"r{run}-{number}"
            table = commit_append(catalog, table, [fake(name)]).table
            note(f"added {name}")
            if number % 3 == 2:
                gone, new = f"r{run}-{number}", f"r{run}-{number}x"
                note(f"replacing {gone} {new}")
                start = table.metadata.current_snapshot_id
                commit_overwrite(
                    catalog, table, removed=in_table(table, gone), added=[fake(new)], start_id=start
                )
                note(f"replaced {gone} {new}")
            if number % 20 == 19:
                change_table(
                    catalog, catalog.load(("ns", "t")), lambda base: old(base, RemoveSnapshots)
                )
            number += 1


def expected(noted: Path) -> tuple[set[str], set[str]]:
    """The files that have to be there, and those that may be."""
    sure: set[str] = set()
    maybe: set[str] = set()
    for line in noted.read_text().splitlines():
        match line.split():
            case ["added", name]:
                sure.add(name)
            case ["replacing", old, new]:
                sure.discard(old)
                maybe |= {old, new}
            case ["replaced", old, new]:
                maybe -= {old, new}
                sure.add(new)
    return sure, maybe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=("directory", "sqlite"), default="directory")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="icesql-killed-"))
    from tests.commit.tables import CATALOGS, create, told

    catalog = CATALOGS[given.kind](folder)
    create(catalog, **PROPERTIES)
    chance, noted = random.Random(given.seed), folder / "noted.txt"
    noted.touch()
    context = multiprocessing.get_context("fork")
    wrong, phases = 0, Counter()
    for run in range(given.kills):
        process = context.Process(target=write, args=(given.kind, folder, run, str(noted)))
        process.start()
        while f"start {run}\n" not in noted.read_text():
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.6))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        lines = noted.read_text().splitlines()
        phases[lines[-1].split()[0]] += 1
        sure, maybe = expected(noted)
        table = catalog.load(("ns", "t"))
        listed = told(table) if table.metadata.refs else ()
        found = Counter(name for each in listed for name, status, _ in each if status != 2)
        # The last append may be done and not noted.
        extra = {each for each in found if each not in sure and each not in maybe}
        unnoted = {each for each in extra if each.startswith(f"r{run}-")}
        lost, twice = sure - found.keys(), [name for name, count in found.items() if count > 1]
        if lost or twice or extra - unnoted or len(unnoted) > 1:
            wrong += 1
            print(f"run {run}: lost {lost}, twice {twice}, not expected {extra}")
        with noted.open("a") as notes:
            for name in unnoted:
                notes.write(f"added {name}\n")
            for name in maybe:
                notes.write(f"{'added' if name in found else 'gone'} {name}\n")
    head = table.metadata.current_snapshot
    total = 0 if head is None else int(head.summary["total-records"])
    print(
        f"{given.kind}: {given.kills} kills, {wrong} wrong; killed after: {dict(phases)}; "
        f"{len(found)} files in the table, {total} by its summary"
    )
    return int(wrong > 0 or total != len(found))


if __name__ == "__main__":
    raise SystemExit(main())
