"""Kill statements at random moments: a table is as before or as after them, and stays usable.

    python tests/campaigns kills [--histories 40] [--first 0] [--length 12]
        [--kinds folder,sqlite,rest] [--lanes 2] [--out F] [--only N …]

A history is one of ``two_writers.py`` without the other writer: each statement (rows, transactions,
maintenance, columns, copies of the table …) runs in a process of its own, which gets SIGKILL at a
moment inside of it: half of the bytes of a file, before and after files are linked, inside of a
transaction of SQLite, between an attempt and its answer, in clean-up, or by the clock. Then:

- every table, branch and snapshot has the rows of before or of after, and a copy is whole;
- ``remove_orphan_files`` removes exactly the files that the table does not need, by a reading of its
  metadata with fastavro alone; now and then they stay, and the next statement meets them;
- a statement that ran to its end leaves nothing behind.

At the end of each history the doctor's statements bring what it predicted, or a run of maintenance
does, and a second run finds nothing; and eight processes append to one table at once, of which two
are killed: each commit is there once. Exits with 1 if anything was wrong.
"""

from __future__ import annotations

from functools import partial

from tests.campaigns.histories.command import Writers, run
from tests.campaigns.histories.judge import Outcome
from tests.campaigns.histories.killed import KilledHistory, crowd


def history(seed: int, writers: Writers, length: int, kind: str) -> Outcome:
    """The outcome of one history."""
    warehouse, _ = writers.of(kind)
    found = KilledHistory(seed, warehouse).run(length)
    found.faults += crowd(warehouse.arguments(), writers=8, commits=5, kills=2)
    if not found.faults:
        warehouse.forget(f"h{seed}")
        warehouse.forget("crowd")
    return found


main = partial(run, history, histories=40, length=12)
