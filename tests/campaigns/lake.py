"""A generated lake that looks after itself: what was promised comes, and no row is lost.

    python tests/campaigns/lake.py [--tables 200] [--kills 50] [--written 20] [--seed 1]
        [--catalog directory|sqlite] [--only follow|maintain|kill|write] [--scratch FOLDER]

Streams of upserts, deletes by position, small files, skew, orphans, old snapshots, branches and
evolved tables of versions 1 to 3, written by the specification beside a model of their rows:

- follow: the doctor's statements are run, and each table is compared with the gain it told;
- maintain: ``icesql maintain --all`` twice; promises are kept, the second run finds nothing to do;
- kill: a run is killed at random moments and goes on with the next one;
- write: a process writes some of the tables meanwhile.

After each the rows of every snapshot that is left, of heads and refs are those of the model, the
manifests are counted without icesql, old orphans are gone and young ones are not. Ends with 1 where
something was wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.campaigns.lakes.checks import (
    follow_doctor,
    orphans_are_gone,
    promises_are_kept,
    rows_are_those_of_the_stream,
    rows_of_the_writer,
)
from tests.campaigns.lakes.lake import Lake
from tests.campaigns.lakes.runs import Maintenance, Writer, killed
from tests.campaigns.lakes.seen import Seen, metadata_of, seen


def follow(lake: Lake, options: argparse.Namespace) -> Iterator[str]:
    """What the doctor has told."""
    yield from follow_doctor(lake)


def maintain(lake: Lake, options: argparse.Namespace) -> Iterator[str]:
    """Twice: all is done by the first run."""
    before = _all_seen(lake)
    maintenance = Maintenance(lake)
    started = time.perf_counter()
    report = maintenance.run()
    _say(lake, before, report, time.perf_counter() - started)
    yield from _ended_well(report)
    yield from promises_are_kept(lake, before, report)
    yield from _rows_and_orphans(lake)
    yield from _again(maintenance, set())


def kill(lake: Lake, options: argparse.Namespace) -> Iterator[str]:
    """Killed and resumed."""
    maintenance = Maintenance(lake)
    # In seconds of CPU: half a second for a table at the most, so that some runs end.
    longest = 0.3 + 0.8 * len(lake.tables) / max(options.kills, 1)
    hit = killed(lake, maintenance, options.kills, options.seed, longest)
    print(f"  {hit} of {options.kills} kills came in the middle of a run")
    yield from _ended_well(maintenance.run())
    yield from _rows_and_orphans(lake)
    yield from _ended_well(maintenance.run())  # what the killed ones had half done
    yield from _again(maintenance, set())
    yield from _rows_and_orphans(lake)


def write(lake: Lake, options: argparse.Namespace) -> Iterator[str]:
    """Beside a writer."""
    written = [each for each in lake.tables if each.kind != "evolved"][: options.written]
    names = {each.name for each in written}
    writer = Writer(lake, written, options.seed)
    maintenance = Maintenance(lake)
    try:
        report, second = maintenance.run(), maintenance.run()
    finally:
        rows, counts, unsure = writer.stop()
    print(f"  the writer: {counts['done']} commits, {counts['conflict']} conflicts")
    yield from _ended_well(report)
    for each in second["tables"]:
        if each["table"] not in names and each["status"] != "nothing":
            yield f"{each['table']}: {each['status']} in the second run"
    others = [each for each in lake.tables if each.name not in names]
    yield from rows_are_those_of_the_stream(lake, others)
    yield from rows_of_the_writer(lake, written, rows, unsure)


PARTS: dict[str, Callable[[Lake, argparse.Namespace], Iterator[str]]] = {
    "follow": follow, "maintain": maintain, "kill": kill, "write": write,
}  # fmt: skip


def _again(maintenance: Maintenance, written: set[str]) -> Iterator[str]:
    report = maintenance.run()
    yield from _ended_well(report)
    for each in report["tables"]:
        if each["status"] != "nothing" and each["table"] not in written:
            did = [one["action"] for one in each["actions"]]
            yield f"{each['table']}: {each['status']} in the next run: {did} {each['note']}"


def _rows_and_orphans(lake: Lake) -> Iterator[str]:
    yield from rows_are_those_of_the_stream(lake)
    for each in lake.tables:
        yield from orphans_are_gone(each)


def _ended_well(report: dict[str, Any]) -> Iterator[str]:
    if report["code"] != 0:
        yield f"the run ended with {report['code']}"
    for each in report["tables"]:
        if each["status"] not in ("done", "nothing"):
            yield f"{each['table']}: {each['status']} {each['note']}"
        for one in each["actions"]:
            if one["status"] in ("failed", "refused"):
                yield f"{each['table']}: {one['action']} {one['status']}: {one['note']}"


def _all_seen(lake: Lake) -> dict[str, Seen]:
    with lake.connect() as connection:
        return {each.name: seen(metadata_of(connection, each)) for each in lake.tables}


def _say(lake: Lake, before: dict[str, Seen], report: dict[str, Any], seconds: float) -> None:
    after = _all_seen(lake)

    def total(found: dict[str, Seen], name: str) -> int:
        return sum(getattr(each, name) for each in found.values())

    names = ("data_files", "delete_files", "equality_delete_files", "live_manifests", "requests")
    texts = [f"{name} {total(before, name):,} → {total(after, name):,}" for name in names]
    print(f"  {seconds:.1f} s; {', '.join(texts)}")


def _tables(options: argparse.Namespace, folder: Path) -> Lake:
    shutil.rmtree(folder, ignore_errors=True)
    return Lake(folder, options.seed, options.tables, options.catalog)


def main() -> int:
    """The parts one after the other, each on a lake of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--written", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("directory", "sqlite"), default="directory")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="lake"))
    wrong = 0
    for name, part in PARTS.items():
        if options.only not in (None, name):
            continue
        started = time.perf_counter()
        lake = _tables(options, scratch / name)
        print(f"{name}: {len(lake.tables)} tables in {lake.folder}", flush=True)
        for line in part(lake, options):
            print(f"  WRONG: {line}", flush=True)
            wrong += 1
        print(f"  {time.perf_counter() - started:.0f} s", flush=True)
        if not wrong and options.scratch is None:
            shutil.rmtree(lake.folder)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
