"""Kill statements at random moments: the table always reads, as before them or as after them.

    python tests/campaigns/killed_statements.py [--points 1000] [--seconds 2] [--seed 1]
        [--lanes 6] [--rows 6000] [--statements NAME,…] [--kinds directory,sqlite,rest] [--out F]

INSERT … SELECT, UPDATE, MERGE, DELETE, a transaction, compaction (bin-pack, sorted, in parts),
rewrites of manifests and deletes, expiry and the removal of orphans, each on a table of a folder, of
SQLite and of a REST server. A process runs the statement and gets SIGKILL after a random part of
the time that it takes. Then, each time:

- the table has the rows of before or of after, and every snapshot that it names has its own;
- ``remove_orphan_files`` removes exactly the files that the table does not need, by a reading of its
  metadata with fastavro alone, and all snapshots still read;
- the statement runs to its end, with the rows that it leaves when nothing was killed, and leaves no
  orphans itself.

Statements last ``--seconds`` or longer. Small tables take less: then each step of storage and
catalog waits, so that all phases (reading, data, manifests, swap, clean-up …) take equally long and
the points are spread over them, as they are counted. With ``--rows-alone`` nothing waits, and
``--rows`` have to be many.

Results are appended to ``--out``, one JSON object a line; what is there is not done again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.campaigns.kills.statements import NAMED


def lane(
    number: int, given: argparse.Namespace, folder: Path, done: set[tuple[str, str, int]]
) -> None:
    """Do every so-manieth pair of a statement and a kind of catalog."""
    from tests.campaigns.kills.trial import Forker

    forker = Forker()  # before anything here starts a thread
    from tests.campaigns.kills.lake import Lake
    from tests.campaigns.kills.trial import Trial, told

    # The REST server of the tests, by PyIceberg, commits to no table of version 3.
    pairs = [
        (name, kind)
        for kind in given.kinds
        for name in given.statements
        if kind != "rest" or NAMED[name].table[-1] != "3"
    ]
    failed = 0
    each_pair = -(-given.points // len(pairs))
    for name, kind in pairs[number :: given.lanes]:
        wanted = [at for at in range(each_pair) if (name, kind, at) not in done]
        if not wanted:
            continue
        statement = NAMED[name]
        place = folder / f"{kind}-{name.replace(' ', '-')}"
        shutil.rmtree(place, ignore_errors=True)
        lake = None
        try:
            lake = Lake(place, kind, statement.table, given.rows)
            trial = Trial(lake, statement, forker, given.seconds, given.rows_alone)
            for at in wanted:
                point = trial.point(at, given.seed)
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(told(point)) + "\n")
                if point.wrong and given.keep:
                    shutil.copytree(place, folder / f"wrong-{kind}-{name}-{at}", dirs_exist_ok=True)
        except Exception:
            failed += 1
            print(f"{name} on {kind}: {traceback.format_exc()}", flush=True)
        finally:
            if lake is not None:
                lake.close()
            shutil.rmtree(place, ignore_errors=True)
    forker.close()
    sys.exit(bool(failed))


def table(points: list[dict[str, Any]]) -> str:
    """The points by statement and phase, as text."""
    killed = [each for each in points if each["killed"]]
    phases = list(dict.fromkeys(each["phase"] for each in killed))
    from tests.campaigns.kills.slow import PHASES

    phases = [each for each in PHASES if each in phases]
    lines = [
        f"{'':26}" + "".join(f"{each:>15}" for each in (*phases, "all", "before", "after", "wrong"))
    ]
    for name in (*dict.fromkeys(each["statement"] for each in points), "all"):
        own = [each for each in killed if name in (each["statement"], "all")]
        by_phase = Counter(each["phase"] for each in own)
        before = sum(each["state"] == "before" for each in own)
        numbers = [
            *(by_phase[each] for each in phases), len(own), before, len(own) - before,
            sum(bool(each["wrong"]) for each in points if name in (each["statement"], "all")),
        ]  # fmt: skip
        lines.append(f"{name:26}" + "".join(f"{each:>15}" for each in numbers))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--rows-alone", action="store_true", help="let nothing wait")
    parser.add_argument("--statements", type=lambda text: text.split(","), default=[*NAMED])
    parser.add_argument(
        "--kinds", type=lambda text: text.split(","), default=["directory", "sqlite", "rest"]
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the folders of what is wrong")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="icesql-killed-"))
    folder.mkdir(parents=True, exist_ok=True)
    given.out = given.out or folder / "points.jsonl"
    given.out.touch()
    known = [json.loads(each) for each in given.out.read_text().splitlines()]
    done = {(each["statement"], each["kind"], each["number"]) for each in known}
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    lanes = [
        context.Process(target=lane, args=(number, given, folder, done))
        for number in range(given.lanes)
    ]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    points = [json.loads(each) for each in given.out.read_text().splitlines()]
    wrong = [each for each in points if each["wrong"]]
    for each in wrong[:20]:
        print(each)
    killed = sum(each["killed"] for each in points)
    orphans = sum(max(0, each["orphans"]) for each in points)
    print(table(points))
    print(
        f"{len(points)} points in {time.perf_counter() - start:.0f} s: {killed} kills, "
        f"{len(points) - killed} ended before theirs, {len(wrong)} wrong, {orphans} orphans removed; "
        f"statements lasted {min(each['of_seconds'] for each in points):.1f} to "
        f"{max(each['of_seconds'] for each in points):.1f} s"
    )
    return int(bool(wrong) or any(each.exitcode for each in lanes))


if __name__ == "__main__":
    raise SystemExit(main())
