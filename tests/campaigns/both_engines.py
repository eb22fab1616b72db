"""Both engines, one answer: generated statements, in one JVM.

    python tests/campaigns/both_engines.py --statements 5000 --seed 1

Prints each statement on which the local and the Spark engine differ, then what was counted, by
kind. Ends with 1 if any differed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from tests.spark.comparison import DIFFERENT, REFUSED, compared
from tests.spark.conftest import FIELDS, ROWS
from tests.spark.generated import Generator
from tests.writer.table import TableWriter


def main() -> int:
    """Run the campaign; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after as many")
    given = parser.parse_args()
    table = TableWriter(Path(tempfile.mkdtemp(prefix="both-engines-")), FIELDS)
    table.commit([table.data_file(ROWS[:3])])
    table.commit([table.data_file(ROWS[3:])])
    generator = Generator(given.seed)
    outcomes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    end = time.monotonic() + given.seconds
    with icesql.connect() as local, icesql.connect(engine="spark", master="local[2]") as spark:
        for each in (local, spark):
            each.register_table("t", table.metadata_path)
        for number in range(given.statements):
            if time.monotonic() > end:
                break
            statement = generator.statement()
            outcome, words = compared(local, spark, statement.sql)
            outcomes[outcome] += 1
            if outcome == REFUSED:
                refusals[words[:100]] += 1
            if outcome == DIFFERENT:
                print(f"{number}: {statement.sql}\n    {words}", flush=True)
    print("outcomes:", dict(outcomes))
    kinds = {name: count for name, count in generator.drawn.items() if "function" not in name}
    print("kinds:", dict(sorted(kinds.items())))
    print("functions of the table drawn:", sum("function" in name for name in generator.drawn))
    print("refused most:", refusals.most_common(12))
    return 1 if outcomes[DIFFERENT] else 0


if __name__ == "__main__":
    sys.exit(main())
