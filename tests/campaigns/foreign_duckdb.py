"""Run DuckDB's own test suite over Iceberg copies of its tables, with DuckDB as the judge.

    python tests/campaigns foreign_duckdb CHECKOUT [GLOB …] [--each QUERIES] [--limit FILES]
        [--seed N] [--out FILE]

CHECKOUT is a checkout of DuckDB's repository (its folders ``test`` and, for the files that the
tests read, ``data``). The statements that make and change tables run in a DuckDB in memory. Before
each SELECT the tables that it names are copied: by icesql to Iceberg tables of up to three files, and
to a second, plain DuckDB of the same column types, which is the reference. Columns of types that
Iceberg lacks are left out and counted. See ``foreign/answers.py`` for what is counted. A checkout
of SQLite's sqllogictest is judged in the same way: ``'test/**/*.test' --each 150`` draws so many
queries from each of its files.

``--out`` names the file of the findings; a run with the same file continues where it ended.
"""

from __future__ import annotations

import os
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.campaigns.foreign.court import Court
from tests.campaigns.foreign.findings import OUT, Finding, drawn, judge_files, report
from tests.campaigns.foreign.sqllogictest import read_records

# Other folders are about storage, transactions, files and settings.
_FOLDERS = (
    "aggregate", "binder", "cast", "collate", "conjunction", "cte", "delete", "error", "filter",
    "function", "generated_columns", "insert", "join", "json", "keywords", "limit", "optimizer",
    "order", "ordinality", "overflow", "parser", "peg_parser", "pivot", "prepared", "projection",
    "sample", "select", "setops", "show_select", "subquery", "table_function", "timezone", "topn",
    "types", "update", "variant", "vector_types", "window",
)  # fmt: skip
_QUERY = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)


def judged(file: Path, root: Path, each: int = 0, seed: int = 1) -> Iterator[Finding]:
    """The findings of one suite file; only of ``each`` randomly drawn queries, unless that is 0."""
    os.chdir(root)
    records = list(read_records(file, "duckdb"))
    queries = [number for number, record in enumerate(records) if _QUERY.match(record.sql)]
    chosen = random.Random(f"{seed} {file.name}").sample(queries, min(each, len(queries)))
    left_out = {*queries} - {*chosen} if each else set()
    with tempfile.TemporaryDirectory() as folder, closing(Court(Path(folder))) as court:
        place = Path(folder) / "files"
        place.mkdir()
        for number, record in enumerate(records):
            sql = re.sub(r"__TEST_DIR__|\{TEST_DIR\}", str(place), record.sql)
            if number not in left_out:
                yield from court.judged(str(file.relative_to(root)), replace(record, sql=sql))
        copies = court.copies
        for word, found in (("column left out", copies.left_out), ("too large", copies.too_large)):
            yield from [Finding(str(file.relative_to(root)), f"({word})")] * len(found)


def main(
    checkout: Path, files: tuple[str, ...] = (), *, each: int = 0, limit: int = 0, seed: int = 1,
    out: Path = OUT, workers: int = 2,
) -> int:  # fmt: skip
    """Judge the files of some globs, by default those with queries, and print the outcome."""
    root = checkout.resolve()
    globs = files or [f"test/sql/{name}/**/*.test" for name in _FOLDERS]
    found = drawn({file for glob in globs for file in root.glob(glob)}, limit, seed)
    judge_files(found, partial(judged, root=root, each=each, seed=seed), out, workers=workers)
    return report(out)
