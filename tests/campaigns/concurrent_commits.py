"""Many processes append to one table: no commit is lost, none is there twice.

    python tests/campaigns/concurrent_commits.py [--kind directory|sqlite] [--writers 8]
        [--commits 500] [--folder F]

Retries are set high and the history is kept short: 8 writers meet at each commit, and metadata
that lists thousands of snapshots would be most of the time. Each file holds one row that tells who
appended it, so the rows of the table say which commits are there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

PROPERTIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "200",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.previous-versions-max": "10",
}
KEPT = 30


def opened(kind: str, folder: Path):
    from tests.commit.tables import directory

    if kind == "directory":
        return directory(folder)
    from icesql.catalog.sqlite import SqliteCatalog

    return SqliteCatalog(str(folder / "c.db"), "c", properties={"warehouse": str(folder / "wh")})


def write(kind: str, folder: Path, writer: int, commits: int, mode: str) -> None:
    from icesql.commit.append import commit_append
    from icesql.commit.change import change_table
    from icesql.iceberg.metadata.changes.updates import RemoveSnapshots
    from tests.commit.tables import fake

    catalog = opened(kind, folder)
    for number in range(commits):
        table = catalog.load(("ns", "t"))
        commit_append(catalog, table, [fake(f"w{writer}-{number}")], summary={"who": f"{writer}"})
        if number % 40 == 39 and mode == "short":
            change_table(
                catalog, catalog.load(("ns", "t")), lambda base: old(base, RemoveSnapshots)
            )


def old(base, remove):
    """The update that forgets all but the newest snapshots, none where there are few."""
    ids = [*base.snapshots]
    gone = tuple(each for each in ids[:-KEPT] if each != base.current_snapshot_id)
    return [remove(gone)] if gone else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=("directory", "sqlite"), default="directory")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="icesql-commits-"))
    return run(given.kind, folder, given.writers, given.commits)


def run(kind: str, folder: Path, writers: int, commits: int, mode: str = "short") -> int:
    from tests.commit.tables import CATALOGS, create, live, told

    catalog = CATALOGS[kind](folder)
    create(catalog, **PROPERTIES)
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=write, args=(kind, folder, writer, commits, mode))
        for writer in range(writers)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    seconds = time.perf_counter() - start
    failed = sum(each.exitcode != 0 for each in processes)
    table = catalog.load(("ns", "t"))
    wanted = {f"w{writer}-{number}" for writer in range(writers) for number in range(commits)}
    found = Counter(name for each in told(table) for name, status, _ in each if status != 2)
    lost, twice = wanted - found.keys(), [name for name, count in found.items() if count > 1]
    total = int(table.metadata.current_snapshot.summary["total-records"])
    print(
        f"{kind}: {writers} writers x {commits} commits in {seconds:.0f} s: {len(found)} there, "
        f"{len(lost)} lost, {len(twice)} twice, {failed} writers failed; the summary says {total}; "
        f"last sequence number {table.metadata.last_sequence_number}"
    )
    good = not lost and not twice and not failed and total == len(wanted) == len(live(table))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
