"""Many queries in the idiom of the manual, with what the process holds printed now and then.

    python tests/campaigns/leaks.py [QUERIES]

Ends with code 1 when threads, descriptors or temporary files are left, or when memory grew by more
than 32 MB after the first tenth.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "x", "required": True, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]
QUERIES = (
    "SELECT x, s FROM t WHERE x < 50",
    "SELECT count(*) FROM t",
    "SELECT s, sum(x) FROM t GROUP BY s",
    "SELECT a.x FROM t a JOIN t b ON a.x = b.x LIMIT 3",
    "SHOW TABLES",
    "EXPLAIN ANALYZE SELECT x FROM t",
)


def held(folder: Path) -> tuple[int, int, int, int]:
    """Resident kB, threads, descriptors, temporary files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE") // 1024
    files = sum(path.is_file() for path in folder.rglob("*"))
    return resident, threading.active_count(), len(os.listdir("/proc/self/fd")), files


def use(connection: icesql.Connection, number: int) -> None:
    connection.execute(QUERIES[number % len(QUERIES)]).fetchall()
    match number % 10:
        case 3:
            connection.execute("SELECT a.x FROM t a, t b").fetchone()
        case 5:
            connection.execute("SELECT x FROM t").arrow()
        case 7:
            connection.execute("SELECT a.x FROM t a, t b").arrow_reader().read_next_batch()
        case 9:
            with suppress(icesql.DataError):
                connection.execute("SELECT CAST(s AS INTEGER) FROM t").fetchall()


def main(count: int) -> int:
    """Run ``count`` queries; 0 when nothing is left of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = TableWriter(folder / "t", FIELDS)
        table.commit([table.data_file([{"x": i, "s": f"s{i % 7}"} for i in range(200)])])
        settings = {"temp_directory": str(folder / "spill")}
        with icesql.connect(settings=settings) as connection:
            connection.register_table("t", table.metadata_path)
            first, step = held(folder / "spill"), max(1, count // 10)
            print(f"{'queries':>8} {'RSS kB':>9} threads descriptors files")
            for number in range(count):
                use(connection, number)
                if (number + 1) % step == 0:
                    gc.collect()
                    time.sleep(0.1)  # threads end soon, not in the call
                    now = held(folder / "spill")
                    print(f"{number + 1:>8} {now[0]:>9} {now[1]:>7} {now[2]:>11} {now[3]:>5}")
                    if number + 1 == step:
                        first = now
    left = [after > before for after, before in zip(now[1:], first[1:], strict=True)]
    return int(any(left) or now[0] - first[0] > 32 << 10)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
