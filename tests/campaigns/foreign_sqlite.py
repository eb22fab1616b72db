"""SQLite's sqllogictest files, asked of Iceberg copies of their tables, with DuckDB as the judge.

    python tests/campaigns foreign_sqlite CHECKOUT [GLOB] [--each QUERIES]

CHECKOUT is a checkout of a copy of SQLite's sqllogictest (its folder ``test``). Of each file
``--each`` queries are drawn. What is counted and the other options are those of
``foreign_duckdb.py``; the files that only test another statement than SELECT are left out.
"""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path

from tests.campaigns.foreign.command import OUT, drawn, run
from tests.campaigns.foreign.court import in_court, judged_statements
from tests.campaigns.foreign.findings import Finding, Keep
from tests.campaigns.foreign.sqllogictest import read_records

_QUERY = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)


def judge_file(file: Path, root: Path, each: int, seed: int, keep: Keep) -> None:
    """Judge ``each`` queries of one suite file, drawn by ``seed``."""
    records = list(read_records(file, "duckdb"))
    queries = [number for number, record in enumerate(records) if _QUERY.match(record.sql)]
    drawn = set(random.Random(f"{seed} {file.name}").sample(queries, min(each, len(queries))))
    with tempfile.TemporaryDirectory() as folder, in_court(Path(folder)) as court:
        for number, record in enumerate(records):
            if number in drawn or not _QUERY.match(record.sql):
                for text, verdict, setup in judged_statements(court, record):
                    where = f"{file.relative_to(root)}:{record.line}"
                    if verdict.word == "same":
                        keep(Finding(where, "same"))
                    else:
                        keep(Finding(where, verdict.word, text, verdict.note, setup))


def main(
    checkout: Path, files: str = "test/**/*.test", *, each: int = 150, limit: int = 0,
    seed: int = 1, out: Path = OUT, workers: int = 2,
) -> int:  # fmt: skip
    """Judge so many queries of each file of a glob, and print what came out."""
    root = checkout.resolve()
    found = drawn([*root.glob(files)], limit, seed)
    return run(found, lambda file, keep: judge_file(file, root, each, seed, keep), out, workers)
