"""Both engines, one answer: generated statements, in one JVM.

    python tests/campaigns both_engines [--count 5000] [--seed 1] [--seconds S]

Prints each statement on which the local and the Spark engine differ, then what was counted, by
kind.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

import icesql
from tests.spark.comparison import DIFFERENT, REFUSED, compared
from tests.spark.conftest import FIELDS, ROWS
from tests.spark.generated import Generator
from tests.writer.table import TableWriter


def main(*, count: int = 5_000, seed: int = 1, seconds: float = float("inf")) -> int:
    """Compare so many statements, for at most so long; how many differ."""
    table = TableWriter(Path(tempfile.mkdtemp(prefix="both-engines-")), FIELDS)
    table.commit([table.data_file(ROWS[:3])])
    table.commit([table.data_file(ROWS[3:])])
    generator = Generator(seed)
    outcomes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with icesql.connect() as local, icesql.connect(engine="spark", master="local[2]") as spark:
        for each in (local, spark):
            each.register_table("t", table.metadata_path)
        for number in range(count):
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
    return outcomes[DIFFERENT]
