"""SQLite's sqllogictest files, asked of Iceberg copies of their tables, with DuckDB as the judge.

    python tests/campaigns foreign_sqlite CHECKOUT [GLOB …] [--each QUERIES]

CHECKOUT is a checkout of a copy of SQLite's sqllogictest (its folder ``test``). Of each file
``--each`` queries are drawn. What is counted and the other options are those of ``foreign_duckdb.py``.
"""

from __future__ import annotations

from pathlib import Path

from tests.campaigns import foreign_duckdb
from tests.campaigns.foreign.findings import OUT


def main(
    checkout: Path, files: tuple[str, ...] = ("test/**/*.test",), *, each: int = 150,
    limit: int = 0, seed: int = 1, out: Path = OUT, workers: int = 2,
) -> int:  # fmt: skip
    """Judge so many queries of each file of some globs, and print what came out."""
    return foreign_duckdb.main(
        checkout, files, each=each, limit=limit, seed=seed, out=out, workers=workers
    )
