"""Queries over a store that fails: right rows or a clear error, never other rows.

    python tests/campaigns/store_faults.py [--queries 1000] [--seed 1] [--errors 0.05] [--cuts 0.02]

Of the answers of a store on this machine a share is 500 or 503, a share is cut off in its body, a
share slow. Every query runs in a connection with an empty cache, by one of the readers. Ends with
1 if an answer differed from that of DuckDB over the same files, or an error was not icesql's.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from tests.stores.lake import make_lake
from tests.stores.server import Store, at_random

QUERIES = (
    "SELECT count(*), sum(id), max(name) FROM lake.small",
    "SELECT sum(price) FROM lake.small WHERE day >= DATE '2026-03-01'",
    "SELECT sum(id), sum(price) FROM lake.large WHERE day >= DATE '2026-06-01'",
    "SELECT * FROM lake.large WHERE id = 12345",
    "SELECT count(*) FROM lake.large a JOIN lake.small b ON a.id = b.id * 70",
    "SELECT id, name FROM lake.large ORDER BY name LIMIT 3",
)
READERS: tuple[dict[str, str], ...] = (
    {},
    {"whole_file_size": "1kB"},
    {"local_reader": "arrow"},
    {"local_reader": "arrow", "cache": "off"},
)


def expected(bucket: Path, sql: str) -> list[Any]:
    for name in ("small", "large"):
        sql = sql.replace(f"lake.{name}", f"'{bucket}/lake/{name}/data/*.parquet'")
    return duckdb.sql(sql).fetchall()


def run(
    bucket: Path, count: int, seed: int, errors: float, cuts: float, slow: float = 0.05
) -> Counter[str]:
    """How many queries ended how: "right", "wrong", "foreign", or the class of an error."""
    chance, ends = random.Random(seed), Counter[str]()
    answers = {sql: expected(bucket, sql) for sql in QUERIES}
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    with Store(bucket).running() as store:
        store.fault = at_random(seed, errors, cuts, slow, stall=0.1)
        for _ in range(count):
            sql, reader = chance.choice(QUERIES), chance.choice(READERS)
            shutil.rmtree(folder, ignore_errors=True)
            settings = {"cache_directory": str(folder), "query_timeout": "60", **reader}
            try:
                with icesql.connect(
                    uri=f"sqlite:///{bucket}/catalog.db",
                    properties=store.properties(),
                    settings=settings,
                ) as connection:
                    found = connection.execute(sql).fetchall()
                ends["right" if found == answers[sql] else "wrong"] += 1
                if found != answers[sql]:
                    print("WRONG", reader, sql, found[:3])
            except icesql.Error as error:
                ends[type(error).__name__] += 1
                print(error)
            except Exception as error:
                ends["foreign"] += 1
                print("FOREIGN", type(error), error)
    shutil.rmtree(folder, ignore_errors=True)
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--errors", type=float, default=0.05)
    parser.add_argument("--cuts", type=float, default=0.02)
    given = parser.parse_args()
    bucket = Path(tempfile.mkdtemp(prefix="bucket-"))
    try:
        make_lake(bucket)
        started = time.monotonic()
        ends = run(bucket, given.queries, given.seed, given.errors, given.cuts)
        print(dict(ends), f"{time.monotonic() - started:.0f} s")
    finally:
        shutil.rmtree(bucket)
    if ends["wrong"] or ends["foreign"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
