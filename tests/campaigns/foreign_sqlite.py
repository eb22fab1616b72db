"""SQLite's sqllogictest files, asked of Iceberg copies of their tables, with DuckDB as the judge.

    python tests/campaigns/foreign_sqlite.py CHECKOUT [--files GLOB] [--each QUERIES]

CHECKOUT is a checkout of a copy of SQLite's sqllogictest (its folder ``test``). Of each file
``--each`` queries are drawn. What is counted and the other options are those of
``foreign_duckdb.py``; the files that only test another statement than SELECT are left out.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.campaigns.foreign.command import add_options, run
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


def main(arguments: list[str] | None = None) -> int:
    """Judge the files that are asked for and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", default="test/**/*.test")
    parser.add_argument("--each", type=int, default=150, help="queries of a file")
    add_options(parser)
    chosen = parser.parse_args(arguments)
    root = chosen.checkout.resolve()
    files = sorted(root.glob(chosen.files))
    return run(
        chosen,
        files,
        lambda file, keep: judge_file(file, root, chosen.each, chosen.seed, keep),
    )


if __name__ == "__main__":
    sys.exit(main())
