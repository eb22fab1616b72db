"""Upserts that others publish: a million keys, and 20,000 rows of 200 columns, beside PyIceberg's.

    python tests/benchmarks/upserts.py [--seconds 300] [--only keys,wide] [--scale 1]

"keys" upserts a million rows of four columns into a table of a million, half of them new; "wide"
20,000 rows of 200 columns into as many, of which a half differ in one column. icesql runs MERGE with
UPDATE SET * and INSERT *, PyIceberg ``Table.upsert``; both begin with a table of the same rows in an
SQLite catalog, and end with the same ones. Each has a process of its own; a line has seconds of wall
and CPU time and the greatest memory of that process. What takes longer than ``--seconds`` is stopped.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

CASES = ("keys", "wide")


def rows(case: str, scale: float, *, new: bool) -> Any:
    """The rows of the table, or those that are upserted."""
    import numpy as np
    import pyarrow as pa

    if case == "keys":
        count = int(1_000_000 * scale)
        keys = np.arange(count, dtype="int64") + (count // 2 if new else 0)
        values = {"a": keys % 1000 + new, "b": keys / 3 + new}
        names = pa.array([f"row {key % 1000}" for key in keys])
        return pa.table({"k": keys, **values, "c": names})
    count = int(20_000 * scale)
    keys = np.arange(count, dtype="int64")
    found = {"k": keys} | {f"c{n}": keys * n % 977 / 2 for n in range(199)}
    if new:
        found["c198"] = np.where(keys % 2 == 0, found["c198"] + 1, found["c198"])
    return pa.table(found)


def run(engine: str, case: str, scale: float) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    with tempfile.TemporaryDirectory() as folder:
        uri = f"sqlite:///{folder}/catalog.db"
        catalog = SqlCatalog("c", uri=uri, warehouse=f"file://{folder}/w")
        catalog.create_namespace("s")
        before, source = rows(case, scale, new=False), rows(case, scale, new=True)
        table = catalog.create_table("s.t", before.schema)
        table.append(before)
        if engine == "icesql":
            import icesql

            con = icesql.connect(uri=uri, warehouse=f"file://{folder}/w")
            con.execute("SELECT count(*) FROM s.t").fetchall()
            merge = (
                "MERGE INTO s.t AS t USING source AS u ON t.k = u.k "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            started, cpu = time.perf_counter(), time.process_time()
            con.execute(merge, tables={"source": source}).fetchall()
        else:
            started, cpu = time.perf_counter(), time.process_time()
            table.upsert(source, join_cols=["k"])
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        wanted = {row["k"]: row for row in before.to_pylist()}
        wanted |= {row["k"]: row for row in source.to_pylist()}
        for each in catalog.load_table("s.t").scan().to_arrow().to_pylist():
            assert wanted.pop(each["k"]) == each, each
        assert not wanted
    print(f"{case:5} {engine:10} {wall:8.1f} s wall {cpu:8.1f} s CPU {peak:6,} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run(*given.one, given.scale)
        return
    for case in given.only.split(","):
        for engine in ("icesql", "pyiceberg"):
            one = ["--one", engine, case, "--scale", str(given.scale)]
            try:
                subprocess.run([sys.executable, __file__, *one], check=True, timeout=given.seconds)
            except subprocess.TimeoutExpired:
                print(f"{case:5} {engine:10} is not done after {given.seconds:,.0f} s", flush=True)


if __name__ == "__main__":
    main()
