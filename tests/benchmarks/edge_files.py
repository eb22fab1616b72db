"""How many files counts, extremes and top-n queries read of a table of many files, and how long.

    python tests/benchmarks/edge_files.py CACHE [--files 10000] [--rounds 5]

The files hold ten rows each, in ascending order of ``id`` and ``ts``. Every query is run with
pruning and without; the rows must be equal. Milliseconds are medians, and the ratio is that of
the two; the first run, which decodes the manifests, is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
]
ROWS, FILES_IN_A_COMMIT = 10, 500
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
QUERIES = (
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM t WHERE id BETWEEN {low} AND {high}",
    "SELECT count(name), min(id), max(ts) FROM t WHERE id >= {low} AND id < {high}",
    "SELECT min(ts), max(ts) FROM t WHERE id > {low}",
    "SELECT * FROM t ORDER BY ts DESC LIMIT 10",
)


def table(folder: Path, files: int) -> str:
    """The metadata file of the table, which is written once."""
    done = folder / f"edges-{files}.txt"
    if not done.exists():
        writer = TableWriter(folder / f"edges-{files}", FIELDS)
        for first in range(0, files, FILES_IN_A_COMMIT):
            numbers = range(first, min(files, first + FILES_IN_A_COMMIT))
            writer.commit([writer.data_file(list(map(row, _rows(each)))) for each in numbers])
        done.write_text(str(writer.metadata_path))
    return done.read_text()


def _rows(file: int) -> range:
    return range(file * ROWS, (file + 1) * ROWS)


def row(number: int) -> dict[str, Any]:
    """One row of the table."""
    return {"id": number, "ts": FIRST + timedelta(seconds=number), "name": f"n{number % 7}"}


def measured(connection: icesql.Connection, sql: str, rounds: int) -> tuple[Any, int, float]:
    """The rows, the data files read, and the median of the milliseconds of ``rounds`` runs."""
    taken = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        cursor = connection.execute(sql)
        rows = cursor.fetchall()
        taken.append(1000 * (time.perf_counter() - started))
    files = sum(each.result_data_files for each in cursor.scan_reports)
    return rows, files, statistics.median(taken[1:])


def main() -> None:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    rows = given.files * ROWS
    with icesql.connect() as connection:
        connection.register_table("t", table(given.cache, given.files))
        print(f"{'files':>6} {'of':>6} {'ms':>9} {'all ms':>9} ratio")
        for query in QUERIES:
            sql = query.format(low=rows // 5 + 3, high=rows - rows // 5 + 5)
            found, files, pruned = measured(connection, sql, given.rounds)
            connection.execute("SET prune = off")
            expected, every, whole = measured(connection, sql, 1)
            connection.execute("RESET prune")
            if found != expected:
                raise SystemExit(f"{sql}: {found} is not {expected}")
            ratio = pruned / whole
            print(f"{files:>6} {every:>6} {pruned:>9.1f} {whole:>9.1f} {ratio:>5.2f}  {sql}")


if __name__ == "__main__":
    main()
