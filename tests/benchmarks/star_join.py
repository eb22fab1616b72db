"""How many files of a fact table a star join reads, with run-time filters and without.

    python tests/benchmarks/star_join.py CACHE [--files 400] [--rows 5000] [--rounds 5]

The fact table is clustered by its day, and its customers are in no order. Both ways have to give
the same rows. Milliseconds are medians of warm runs; exits with 1 where a join that a selective
day limits reads more than 10 % of the files, or one that nothing limits is slower by a tenth.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from tests.writer.table import TableWriter

FACT = [
    {"id": 1, "name": "day_key", "required": False, "type": "long"},
    {"id": 2, "name": "customer_key", "required": False, "type": "long"},
    {"id": 3, "name": "amount", "required": False, "type": "double"},
]
DAYS = [
    {"id": 1, "name": "day_key", "required": False, "type": "long"},
    {"id": 2, "name": "year", "required": False, "type": "int"},
    {"id": 3, "name": "week", "required": False, "type": "int"},
]
CUSTOMERS = [
    {"id": 1, "name": "customer_key", "required": False, "type": "long"},
    {"id": 2, "name": "segment", "required": False, "type": "string"},
]
# The query, and whether the keys may leave out nine tenths of the files.
QUERIES = (
    ("SELECT sum(amount) FROM fact JOIN days USING (day_key) WHERE year = 2024 AND week = 20", True),
    ("SELECT segment, sum(amount) FROM fact JOIN days USING (day_key) JOIN customers USING "
     "(customer_key) WHERE year = 2024 AND week = 20 GROUP BY segment ORDER BY 1", True),
    ("SELECT sum(amount) FROM fact WHERE day_key IN (SELECT day_key FROM days WHERE year = 2024 "
     "AND week = 20)", True),
    ("SELECT sum(amount) FROM fact f WHERE EXISTS (SELECT 1 FROM days d WHERE "
     "d.day_key = f.day_key AND year = 2024 AND week = 20)", True),
    ("SELECT count(*) FROM fact WHERE day_key = (SELECT max(day_key) FROM fact)", True),
    ("SELECT segment, sum(amount) FROM fact JOIN customers USING (customer_key) WHERE "
     "segment = 's3' GROUP BY segment", False),
)  # fmt: skip
_DAYS, _CUSTOMERS, _SEED = 1_400, 10_000, 7


def tables(folder: Path, files: int, rows: int) -> dict[str, str]:
    """The metadata files of the tables, which are written once."""
    done = folder / f"star-{files}-{rows}"
    names = {name: done / f"{name}.txt" for name in ("fact", "days", "customers")}
    if not names["customers"].exists():
        done.mkdir(parents=True)
        fact, days = TableWriter(done / "fact", FACT), TableWriter(done / "days", DAYS)
        customers = TableWriter(done / "customers", CUSTOMERS)
        rng = random.Random(_SEED)
        total = files * rows
        fact.commit(
            [
                fact.data_file(
                    [
                        {
                            "day_key": number * _DAYS // total,
                            "customer_key": rng.randrange(_CUSTOMERS),
                            "amount": number % 100 / 4,
                        }
                        for number in range(file * rows, (file + 1) * rows)
                    ]
                )
                for file in range(files)
            ]
        )
        days.commit(
            [
                days.data_file(
                    [
                        {"day_key": each, "year": 2022 + each // 364, "week": each % 364 // 7}
                        for each in range(_DAYS)
                    ]
                )
            ]
        )
        customers.commit(
            [
                customers.data_file(
                    [{"customer_key": n, "segment": f"s{n % 5}"} for n in range(_CUSTOMERS)]
                )
            ]
        )
        for name, writer in (("fact", fact), ("days", days), ("customers", customers)):
            names[name].write_text(str(writer.metadata_path))
    return {name: path.read_text() for name, path in names.items()}


def measured(connection: icesql.Connection, sql: str, rounds: int) -> tuple[Any, int, float]:
    """The rows, the files of ``fact`` that were read, and the median of the milliseconds."""
    taken = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        cursor = connection.execute(sql)
        rows = cursor.fetchall()
        taken.append(1000 * (time.perf_counter() - started))
    reports = [each for each in cursor.scan_reports if each.table_name == "fact"]
    return rows, reports[0].result_data_files, statistics.median(taken[1:])


def main() -> int:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    failed = False
    with icesql.connect() as connection:
        for name, path in tables(given.cache, given.files, given.rows).items():
            connection.register_table(name, path)
        print(f"{'files':>6} {'of':>6} {'ms':>8} {'off ms':>8} ratio")
        for sql, limited in QUERIES:
            found, files, narrowed = measured(connection, sql, given.rounds)
            connection.execute("SET run_time_filters = off")
            expected, _, whole = measured(connection, sql, given.rounds)
            connection.execute("RESET run_time_filters")
            if found != expected:
                raise SystemExit(f"{sql}: {found} is not {expected}")
            ratio = narrowed / whole
            failed |= files > given.files / 10 if limited else ratio > 1.1
            print(
                f"{files:>6} {given.files:>6} {narrowed:>8.1f} {whole:>8.1f} {ratio:>5.2f}  {sql}"
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
