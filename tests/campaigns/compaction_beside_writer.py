"""Compact a table again and again while another process changes its rows; compare with a ledger.

    python tests/campaigns/compaction_beside_writer.py [--seconds 120] [--version 3] [--seed 1]
        [--files 200] [--rows 400000] [--strategy binpack|sort] [--pause 0.2]

The writer appends, deletes and updates merge-on-read, one statement after the other, and notes what
each did once it is committed. A rewrite of all files runs beside it the whole time. At the end the
rows of the table, without caches and pruning, are those of the ledger. Prints how many commits of
each there were, how many rows the compactions carried over and how many files they left alone.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql

WRITER = """
import json, random, sys, time, icesql
folder, seed, seconds, pause, rows = sys.argv[1], *map(float, sys.argv[2:])
chance = random.Random(int(seed))
known = {n: n for n in range(int(rows))}
next_id, statements, failed = int(rows), 0, 0
until = time.monotonic() + seconds
con = icesql.connect(warehouse=folder)
while time.monotonic() < until:
    kind = chance.choice(["insert", "delete", "delete", "update"])
    ids = sorted(chance.sample([*known], 200)) if len(known) > 200 else []
    listed = ", ".join(map(str, ids))
    try:
        if kind == "insert":
            con.execute(
                f"INSERT INTO s.t SELECT range, range, 'x' FROM range({next_id}, {next_id + 500})"
            )
        elif kind == "delete":
            con.execute(f"DELETE FROM s.t WHERE id IN ({listed})")
        else:
            con.execute(f"UPDATE s.t SET v = -v - 1 WHERE id IN ({listed})")
    except icesql.CommitConflictError:
        failed += 1
        continue
    statements += 1
    if kind == "insert":
        known |= {n: n for n in range(next_id, next_id + 500)}
        next_id += 500
    elif kind == "delete":
        for each in ids:
            del known[each]
    else:
        for each in ids:
            known[each] = -known[each] - 1
    time.sleep(pause)
print(json.dumps([statements, failed, [*known.items()]]))
"""


def made(folder: str, version: int, files: int, rows: int) -> None:
    with icesql.connect(warehouse=folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (id BIGINT, v BIGINT, p VARCHAR) TBLPROPERTIES ("
            f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
            "'write.update.mode' = 'merge-on-read', 'commit.retry.num-retries' = '100', "
            "'commit.retry.min-wait-ms' = '5')"
        )
        step = rows // files
        for first in range(0, rows, step):
            con.execute(
                f"INSERT INTO s.t SELECT range, range, 'x' FROM range({first}, {first + step})"
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=120)
    arguments.add_argument("--version", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--files", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=400_000)
    arguments.add_argument("--strategy", default="binpack")
    arguments.add_argument("--pause", type=float, default=0.2)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made(folder, given.version, given.files, given.rows)
        texts = [str(each) for each in (given.seed, given.seconds, given.pause, given.rows)]
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, *texts], stdout=subprocess.PIPE, text=True
        )
        chance = random.Random(given.seed)
        order = ", sort_order => 'v DESC'" if given.strategy == "sort" else ""
        rewrites = conflicts = carried = 0
        until = time.monotonic() + given.seconds
        con = icesql.connect(warehouse=folder, settings={"threads": 2})
        while time.monotonic() < until:
            partial = chance.choice(["true", "false"])
            size = chance.choice([200_000, 1_000_000, 500_000_000])
            try:
                cursor = con.execute(
                    f"CALL system.rewrite_data_files('s.t', strategy => '{given.strategy}'{order}, "
                    f"options => map('rewrite-all', 'true', 'partial-progress.enabled', "
                    f"'{partial}', 'max-file-group-size-bytes', '{size}'))"
                )
                cursor.fetchall()
                rewrites += 1
                for note in cursor.notes:
                    if "others deleted" in note:
                        words = note.split(" rows that others deleted")[0].split()
                        carried += int(words[-1].replace(",", ""))
                    if "not rewritten" in note:
                        conflicts += 1
            except icesql.CommitConflictError as error:
                conflicts += 1
                print("conflict:", str(error)[:300], flush=True)
        statements, failed, ledger = json.loads(writer.communicate()[0])
        with icesql.connect(
            warehouse=folder, settings={"caches": False, "prune": False, "local_reader": "arrow"}
        ) as plain:
            found = plain.execute("SELECT id, v FROM s.t").fetchall()
        wanted = sorted((each[0], each[1]) for each in ledger)
        verdict = "right" if sorted(found) == wanted else "WRONG"
        print(
            f"{verdict}: {len(wanted):,} rows; writer {statements} statements, {failed} conflicts; "
            f"{rewrites} compactions, {conflicts} conflicts, {carried:,} rows carried over"
        )
        if verdict != "right":
            lost = sorted({*wanted} - {*found})[:10]
            extra = sorted({*found} - {*wanted})[:10]
            print("lost", lost, "back", extra, len(found) - len(wanted))
            sys.exit(1)


if __name__ == "__main__":
    main()
