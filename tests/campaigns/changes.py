"""CHANGES, DIFF and BLAME of random histories, against a model of their rows in plain Python.

    python tests/campaigns/changes.py [--count 300] [--seed 5000]

Says what was compared, of how many histories with each kind of delete file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from tests.property.test_changes import Checked


def kinds(checked: Checked) -> set[str]:
    """What the history has: its format version, and delete files by kind."""
    found = {f"format version {checked.history.version}"}
    for live in checked.history.writer.live_at.values():
        for each in live:
            is_vector = each.record["file_format"] == "PUFFIN"
            if each.content == 1:
                found.add("deletion vectors" if is_vector else "position deletes")
            elif each.content == 2:
                found.add("equality deletes")
    names = {name for name, _ in checked.history.log}
    return found | {f"step {name.lstrip('_')}" for name in names}


def main() -> int:
    """Exit code 1 if a history differs from its model."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=5000)
    given = arguments.parse_args()
    started, wrong = time.perf_counter(), []
    counts, histories = Counter[str](), Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                checked = Checked(seed, Path(folder))
                with icesql.connect() as connection:
                    checked.check(connection, deep=True)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # pytest's own are no Exception
                wrong.append(seed)
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:500]}")
                continue
            counts += checked.counts
            histories.update(kinds(checked))
    print(f"{given.count} histories in {time.perf_counter() - started:.0f} s, wrong: {wrong}")
    for title, found in (("compared", counts), ("histories with", histories)):
        print(title, ", ".join(f"{name}: {number}" for name, number in sorted(found.items())))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
