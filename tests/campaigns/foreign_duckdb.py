"""DuckDB's own test suite, asked of Iceberg copies of its tables, with DuckDB as the judge.

    python tests/campaigns foreign_duckdb CHECKOUT [GLOB …] [--limit FILES] [--seed N] [--out FILE]

CHECKOUT is a checkout of DuckDB's repository (its folders ``test`` and, for the files that the
tests read, ``data``). The statements that make and change tables run in a DuckDB in memory. Before
each SELECT the tables that it names are copied: to Iceberg tables of up to three files and to
a second, plain DuckDB of the same column types, which is the reference. Types that Iceberg has not
are left out and counted. See ``foreign/verdicts.py`` for what is counted.

``--out`` names the file of the findings; a run over the same file goes on where it was ended.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tests.campaigns.foreign.command import OUT, drawn, run
from tests.campaigns.foreign.court import in_court, judged_statements
from tests.campaigns.foreign.findings import Finding, Keep
from tests.campaigns.foreign.sqllogictest import Record, read_records

# The others are about storage, transactions, files and settings.
_FOLDERS = (
    "aggregate", "binder", "cast", "collate", "conjunction", "cte", "delete", "error", "filter",
    "function", "generated_columns", "insert", "join", "json", "keywords", "limit", "optimizer",
    "order", "ordinality", "overflow", "parser", "peg_parser", "pivot", "prepared", "projection",
    "sample", "select", "setops", "show_select", "subquery", "table_function", "timezone", "topn",
    "types", "update", "variant", "vector_types", "window",
)  # fmt: skip


def judge_file(file: Path, root: Path, keep: Keep) -> None:
    """Judge each SELECT of one suite file."""
    os.chdir(root)
    with tempfile.TemporaryDirectory() as folder, in_court(Path(folder)) as court:
        place = Path(folder) / "files"
        place.mkdir()
        for record in read_records(file, "duckdb"):
            sql = re.sub(r"__TEST_DIR__|\{TEST_DIR\}", str(place), record.sql)
            record = Record(record.line, sql, record.fails, record.connection)
            for text, verdict, setup in judged_statements(court, record):
                where = f"{file.relative_to(root)}:{record.line}"
                if verdict.word == "same":
                    keep(Finding(where, "same"))
                else:
                    keep(Finding(where, verdict.word, text, verdict.note, setup))
        for _ in range(court.copies.left_out):
            keep(Finding(str(file.relative_to(root)), "(column left out)"))
        for _ in range(court.copies.too_large):
            keep(Finding(str(file.relative_to(root)), "(table too large)"))


def main(
    checkout: Path, files: tuple[str, ...] = (), *, limit: int = 0, seed: int = 1,
    out: Path = OUT, workers: int = 2,
) -> int:  # fmt: skip
    """Judge the files of some globs, by default what asks queries, and print what came out."""
    root = checkout.resolve()
    globs = files or [f"test/sql/{name}/**/*.test" for name in _FOLDERS]
    found = drawn([*{file for glob in globs for file in root.glob(glob)}], limit, seed)
    return run(found, lambda file, keep: judge_file(file, root, keep), out, workers)
