"""Conversion of equality deletes against compaction of the same tables, and what reads cost after.

    python tests/benchmarks/converting.py LINEITEM.parquet FOLDER [--rows 2000000] [--runs 3]
        [--threads 2] [--only v2-1,v3-5,…]

The tables are made once below FOLDER, as streams of upserts leave them: a hundred commits, each with
rows of lineitem and, by equality deletes of two columns and the rows again, upserts of rows of older
ones: 1 % and 5 % of them all, in version 2 and 3. A fifth and a sixth table have the same rows
deleted by vectors from the start. Each line is a process of its own: CALL, then a sum over all rows,
the first time and (median of many) again, in CPU seconds of all threads; bytes are those that the
process read and wrote by system calls. Ends with an error where the rows are not the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.compaction import files_below, restore

COMMITS = 100
WARM = "warm"
KINDS = ("v2-1", "v2-5", "v3-1", "v3-5")
KEYS = ("l_orderkey", "l_linenumber")
CALLS = {
    "as it is": "",
    "converted": "CALL system.convert_equality_deletes('s.{}')",
    "compacted": ("CALL system.rewrite_data_files('s.{}', options => map('rewrite-all', 'true'))"),
}
RUN = """
import json, statistics, sys, time
import icesql
folder, name, call, threads = sys.argv[1:5]
con = icesql.connect(warehouse=folder, settings={"threads": int(threads)})
# What is loaded once, loaded before.
for each in ("SELECT sum(l_orderkey) FROM s.warm", call.replace(name, "warm")):
    if each:
        con.execute(each).fetchall()
def io():
    with open("/proc/self/io") as lines:
        found = dict(line.split(": ") for line in lines)
    return int(found["rchar"]), int(found["wchar"])
def peak():
    # Not ru_maxrss, which begins with what the process that starts this one has.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
wall, cpu, (read, written) = time.perf_counter(), time.process_time(), io()
if call:
    con.execute(call).fetchall()
done = io()
taken = {
    "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
    "read": done[0] - read, "written": done[1] - written, "peak": peak(),
}
sql = f"SELECT count(*), sum(l_extendedprice), sum(l_orderkey * l_linenumber) FROM s.\\"{name}\\""
times = []
for _ in range(12):
    cpu = time.process_time()
    rows = con.execute(sql).fetchall()
    times.append(time.process_time() - cpu)
taken |= {"first": times[0], "again": statistics.median(times[2:]), "rows": str(rows)}
print(json.dumps(taken))
"""


def make(source: str, folder: Path, count: int) -> None:
    """The tables; those of a percentage share their data files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.benchmarks.delete_tables import _json_type
    from tests.writer.table import arrow_schema

    rows = pq.read_table(source).slice(0, count)
    plain = {pa.string_view(): pa.string()}
    rows = rows.cast(pa.schema([f.with_type(plain.get(f.type, f.type)) for f in rows.schema]))
    fields = [
        {"id": n, "name": column.name, "required": False, "type": _json_type(column.type)}
        for n, column in enumerate(rows.schema, 1)
    ]
    rows = rows.cast(arrow_schema(fields))
    for percent in (1, 5):
        versions = {f"v2-{percent}": 2, f"v3-{percent}": 3, f"vectors-{percent}": 3}
        _stream(folder, versions, fields, rows, percent, COMMITS)
    _stream(folder, {WARM: 2}, fields, rows.slice(0, 1000), 5, 4)


def _stream(
    folder: Path, versions: dict[str, int], fields: list[Any], rows: Any, percent: int, commits: int
) -> None:
    """Tables of so many commits; rows of older ones are upserted, each at most once."""
    import numpy as np
    import pyarrow as pa

    from tests.writer.table import TableWriter, arrow_schema

    tables = {
        name: TableWriter(
            str(folder / "s" / name),
            fields,
            version=version,
            properties={"write.parquet.compression-codec": "zstd"},
        )
        for name, version in versions.items()
    }
    first = next(iter(tables.values()))
    key_fields = [each for each in fields if each["name"] in KEYS]
    size = -(-rows.num_rows // commits)
    chance = np.random.default_rng(percent)
    added: dict[str, list[Any]] = {name: [] for name in tables}
    inserted: dict[str, list[Any]] = {name: [] for name in tables}
    gone: dict[int, list[int]] = {}
    free = np.ones(rows.num_rows, bool)
    for commit in range(commits):
        parts, keys = [rows.slice(commit * size, size)], None
        older = np.flatnonzero(free[: commit * size])
        if len(older):
            many = min(len(older), size * percent // 100)
            picked = np.sort(chance.choice(older, many, replace=False))
            free[picked] = False
            for each in picked.tolist():
                gone.setdefault(each // size, []).append(each % size)
            parts.append(rows.take(pa.array(picked)))
            keys = parts[1].select(KEYS).cast(arrow_schema(key_fields))
        for number, part in enumerate(parts):
            file = first.data_file(part, stats=number == 0, compression="zstd")
            for name in tables:
                listed = replace(file, record=dict(file.record), sequence_number=commit + 1)
                added[name].append(listed)
                if number == 0:
                    inserted[name].append(listed)
        for name, table in tables.items():
            if keys is not None and not name.startswith("vectors"):
                delete = table.equality_deletes(keys, [each["id"] for each in key_fields])
                delete.sequence_number = commit + 1
                added[name].append(delete)
    for name, table in tables.items():
        table.sequence = commits - 1
        table.commit(added[name])
        if name.startswith("vectors"):
            places = [(inserted[name][part], sorted(of)) for part, of in gone.items()]
            table.commit(table.deletion_vectors(places))


def run(folder: Path, name: str, call: str, threads: str) -> dict[str, Any]:
    """What one process took; the table is as before."""
    command = [sys.executable, "-c", RUN, str(folder), name, call, threads]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = files_below(folder)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    finally:
        restore(folder, before)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(name: str, taken: list[dict[str, Any]]) -> str:
    """The medians of some runs."""
    median = {
        each: statistics.median(one[each] for one in taken) for each in taken[0] if each != "rows"
    }
    peak = max(each["peak"] for each in taken)
    return (
        f"{name:<22} {median['wall']:7.2f} s wall {median['cpu']:7.2f} s CPU "
        f"{median['read'] / 1e6:8.1f} MB read {median['written'] / 1e6:8.1f} MB written {peak:5} "
        f"MB memory; then a sum: {median['first']:6.3f} s CPU, again {median['again']:6.3f}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("source")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--threads", default="2")
    arguments.add_argument("--only", default=",".join(KINDS))
    given = arguments.parse_args()
    folder = given.folder.absolute()
    described = folder / "made.json"
    if not described.exists():
        make(given.source, folder, given.rows)
        described.write_text(json.dumps({"rows": given.rows}))
    taken: dict[str, list[dict[str, Any]]] = {}
    for _ in range(given.runs):
        for kind in given.only.split(","):
            ways = {f"{kind}, {way}": (kind, call) for way, call in CALLS.items()}
            percent = kind.rpartition("-")[2]
            ways[f"{kind}, by vectors"] = (f"vectors-{percent}", "")
            for way, (name, call) in ways.items():
                texts = call.format(name)
                taken.setdefault(way, []).append(run(folder, name, texts, given.threads))
                print(line(way, taken[way][-1:]), flush=True)
            rows = {each["rows"] for way in ways for each in taken[way]}
            if len(rows) != 1:
                raise SystemExit(f"{kind}: the rows differ: {rows}")
    print("medians:")
    for name, found in taken.items():
        print(line(name, found))


if __name__ == "__main__":
    main()
