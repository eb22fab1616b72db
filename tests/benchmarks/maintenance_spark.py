"""Maintenance of tables that streams have left: icesql beside Spark's procedures, in pairs.

    python tests/benchmarks/maintenance_spark.py --python PYTHON --jars A.jar [--tables 8] [--seed 1]
        [--rows 50]

``--python`` has a PySpark that fits the Iceberg runtime of ``--jars``; it runs on local[2]. Twins of
tables of a generated lake are rewritten by each: data files, manifests, expiry. One after the other
in one session of each, which has maintained a table before. Prints the CPU seconds and the wall time
of each table and the ratios of their sums, and compares the rows. ``--rows`` multiplies the rows of
the commits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))


def statements(table: str, system: str) -> list[str]:
    """What both of them run."""
    before = datetime.now(UTC) - timedelta(days=5)
    dangling = "options => map('remove-dangling-deletes', 'true')"
    return [
        f"CALL {system}.rewrite_data_files(table => '{table}', {dangling})",
        f"CALL {system}.rewrite_manifests('{table}')",
        f"CALL {system}.expire_snapshots(table => '{table}', "
        f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}')",
    ]


def worker(jars: str, warehouse: str) -> None:
    """Run the statements of each line of standard input by Spark."""
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, warehouse)
    handle = spark._jvm.java.lang.ProcessHandle.current()
    pid = handle.pid()
    for line in sys.stdin:
        begun, cpu = time.perf_counter(), _cpu_of(pid) + time.process_time()
        for sql in json.loads(line):
            spark.sql(sql).collect()
        spent = _cpu_of(pid) + time.process_time() - cpu
        print(json.dumps([spent, time.perf_counter() - begun]), flush=True)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Spark:
    def __init__(self, python: str, jars: str, warehouse: Path) -> None:
        words = [python, __file__, "--worker", str(warehouse), "--jars", jars]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, table: str) -> tuple[float, float]:
        """CPU seconds and seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(statements(f"c.{table}", "c.system")) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("["):
                cpu, wall = json.loads(line)
                return cpu, wall
        raise RuntimeError("Spark has ended")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _of_icesql(connection: Any, table: str) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), time.process_time()
    for sql in statements(table, "system"):
        connection.execute(sql).fetchall()
    return time.process_time() - cpu, time.perf_counter() - begun


def main() -> int:
    """Print a line for each table, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python")
    parser.add_argument("--jars", required=True)
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        worker(options.jars, options.worker)
        return 0
    import icesql
    from tests.campaigns.lakes.lake import Lake

    folder = Path(tempfile.mkdtemp(prefix="twins"))
    count = (options.tables + 1) * 10 // 9 + 1  # without those that are healthy
    ours, theirs = (
        Lake(folder / each, options.seed, count, scale=options.rows) for each in ("a", "b")
    )
    names = [each.name for each in ours.tables if each.kind != "healthy"][: options.tables + 1]
    spark = _Spark(options.python or sys.executable, options.jars, folder / "b" / "warehouse")
    totals: list[tuple[float, ...]] = []
    wrong = 0
    with ours.connect() as connection, icesql.connect(**theirs.connection) as other:
        size = sum(each.stat().st_size for each in folder.joinpath("a").rglob("data/*"))
        print(f"{len(names) - 1} tables; the lake has {size / 1e6:.1f} MB of data")
        for number, name in enumerate(names):
            if number % 2:
                own, java = _of_icesql(connection, name), spark.run(name)
            else:
                java, own = spark.run(name), _of_icesql(connection, name)
            sql = f"SELECT * FROM {name} ORDER BY id"
            same = connection.execute(sql).fetchall() == other.execute(sql).fetchall()
            wrong += not same
            if number:  # the first one warms them up
                totals.append((*own, *java))
                print(
                    f"{name}: icesql {own[0]:.2f} s of CPU, {own[1]:.2f} s; Spark {java[0]:.2f} s "
                    f"of CPU, {java[1]:.2f} s; rows {'alike' if same else 'DIFFER'}",
                    flush=True,
                )
    spark.close()
    cpu = [each[0] / each[2] for each in totals]
    sums = [sum(column) for column in zip(*totals, strict=True)]
    print(f"CPU: {sums[0]:.2f} of {sums[2]:.2f} s, {sums[0] / sums[2]:.2f} times Spark's")
    print(f"wall time: {sums[1]:.2f} of {sums[3]:.2f} s, {sums[1] / sums[3]:.2f} times Spark's")
    print(f"median ratio of CPU: {statistics.median(cpu):.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
