"""Many small commits: 3,000 of ten rows by icesql, PyIceberg and DuckLake, and what they leave.

    python tests/benchmarks/commits.py CACHE [--commits 3000] [--engines icesql,ducklake,…]
        [--seconds 600]

Each engine has a process of its own, commits to a table on local disk and ends up with the same rows.
icesql commits to a folder and to an SQLite catalog, PyIceberg to an SQLite catalog, and DuckLake (of
DuckDB 1.5.5) to a catalog that is a DuckDB file: once as it is, with rows inlined into that catalog,
and once with a file for each commit. A line has rows a second by wall time over all and over the
first, the middle and the last tenth of the commits, milliseconds of CPU a commit over all and over
the last tenth, a sum over all rows afterwards in a fresh connection
(first and median of five), compaction, and the bytes and files that were left before it. An engine that
is not done after ``--seconds`` stops there and says how far it got. CACHE keeps the environments.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

ROWS = 10
COLUMNS = "id BIGINT, seen TIMESTAMP, v DOUBLE, name VARCHAR"
ENGINES = ("icesql", "icesql sqlite", "pyiceberg", "ducklake", "ducklake files")
# A commit of a number, a sum and a compaction of all rows.
Engine = tuple[Callable[[int], object], Callable[[], Any], Callable[[], object] | None]


def values(number: int) -> str:
    return ", ".join(
        f"({number * ROWS + each}, TIMESTAMP '2026-01-01 00:00:00', {each}.5, 'name {each}')"
        for each in range(ROWS)
    )


def icesql_engine(folder: Path, *, sqlite: bool) -> Engine:
    import icesql

    def connect() -> Any:
        if sqlite:
            return icesql.connect(
                uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh"
            )
        return icesql.connect(warehouse=str(folder))

    if sqlite:
        from pyiceberg.catalog.sql import SqlCatalog

        SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    con = connect()
    con.execute("CREATE SCHEMA s")
    con.execute(f"CREATE TABLE s.t ({COLUMNS})")
    return (
        lambda number: con.execute(f"INSERT INTO s.t VALUES {values(number)}").fetchall(),
        lambda: connect().execute("SELECT count(*), sum(id), sum(v) FROM s.t").fetchone(),
        lambda: con.execute("CALL system.rewrite_data_files('s.t')").fetchall(),
    )


def pyiceberg_engine(folder: Path) -> Engine:
    from datetime import datetime

    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    def catalog() -> Any:
        return SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/w")

    schema = pa.schema(
        {"id": pa.int64(), "seen": pa.timestamp("us"), "v": pa.float64(), "name": pa.string()}
    )
    opened = catalog()
    opened.create_namespace("s")
    table = opened.create_table("s.t", schema)

    def commit(number: int) -> None:
        rows = [
            {
                "id": number * ROWS + n,
                "seen": datetime(2026, 1, 1),
                "v": n + 0.5,
                "name": f"name {n}",
            }
            for n in range(ROWS)
        ]
        table.append(pa.Table.from_pylist(rows, schema=schema))

    def total() -> Any:
        import pyarrow.compute as pc

        found = catalog().load_table("s.t").scan(selected_fields=("id", "v")).to_arrow()
        return len(found), pc.sum(found["id"]).as_py(), pc.sum(found["v"]).as_py()

    return commit, total, None


def ducklake_engine(folder: Path, *, inlines: bool) -> Engine:
    import duckdb

    def connect() -> Any:
        con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        site = Path(duckdb.__file__).parents[1]
        (path,) = site.glob("duckdb_extension_ducklake/**/*.duckdb_extension")
        con.execute(f"LOAD '{path}'")
        limit = "" if inlines else ", DATA_INLINING_ROW_LIMIT 0"
        con.execute(f"ATTACH 'ducklake:{folder}/lake.db' AS l (DATA_PATH '{folder}/data'{limit})")
        return con

    con = connect()
    con.execute(f"CREATE TABLE l.t ({COLUMNS})")

    def compact() -> None:
        if inlines:
            con.execute("CALL ducklake_flush_inlined_data('l')")
        con.execute("CALL ducklake_merge_adjacent_files('l')")

    def total() -> Any:
        # One process opens the catalog's file once: another cursor of it.
        return con.cursor().execute("SELECT count(*), sum(id), sum(v) FROM l.t").fetchone()

    return lambda number: con.execute(f"INSERT INTO l.t VALUES {values(number)}"), total, compact


def engine_of(name: str, folder: Path) -> Engine:
    kind, _, way = name.partition(" ")
    if kind == "icesql":
        return icesql_engine(folder, sqlite=way == "sqlite")
    if kind == "pyiceberg":
        return pyiceberg_engine(folder)
    return ducklake_engine(folder, inlines=way != "files")


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = function()
    return time.perf_counter() - started, found


def run(name: str, folder: Path, commits: int, seconds: float) -> None:
    """Print the line of an engine."""
    commit, total, compact = engine_of(name, folder)
    started, cpu, spent = time.perf_counter(), time.process_time(), []
    ended = [started]
    for number in range(commits):
        commit(number)
        spent.append(time.process_time() - cpu)
        cpu += spent[-1]
        ended.append(time.perf_counter())
        if ended[-1] - started > seconds:
            break
    wall, done = ended[-1] - started, len(spent)
    tenth = max(done // 10, 1)
    last = spent[-tenth:]
    rates = (
        f"{tenth * ROWS / (ended[start + tenth] - ended[start]):,.0f}"
        for start in (0, (done - tenth) // 2, done - tenth)
    )
    left = [each.stat().st_size for each in folder.rglob("*") if each.is_file()]
    taken = [timed(total) for _ in range(6)]
    (answer,) = {each[1] for each in taken}
    rows = done * ROWS
    assert answer == (rows, rows * (rows - 1) // 2, done * sum(n + 0.5 for n in range(ROWS))), (
        answer
    )
    text = (
        f"{name:15} {done:6,} commits {rows / wall:7,.0f} rows/s ({', '.join(rates)})  CPU {1e3 * sum(spent) / done:6.1f} "
        f"ms a commit, {1e3 * statistics.fmean(last):6.1f} at the end;  sum {taken[0][0]:6.3f} s, "
        f"again {statistics.median(each[0] for each in taken[1:]):6.3f};  "
        f"{sum(left) / 1e6:8.1f} MB in {len(left):,} files"
    )
    if compact is not None:
        took, _ = timed(compact)
        text += f";  compaction {took:6.2f} s, then a sum {timed(total)[0]:6.3f} s"
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--commits", type=int, default=3000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run(given.one[0], Path(given.one[1]), given.commits, given.seconds)
        return
    from tpch import environment  # type: ignore[import-not-found]

    ducklake = ("duckdb==1.5.5", "duckdb-extension-ducklake==1.5.5")
    pythons = {
        "icesql": Path(sys.executable),
        "pyiceberg": Path(sys.executable),
        "ducklake": environment(given.cache.resolve() / "env-ducklake", *ducklake),
    }
    for name in given.engines.split(","):
        folder = Path(tempfile.mkdtemp(prefix="commits-"))
        command = [pythons[name.split()[0]], __file__, str(given.cache), "--one", name, str(folder)]
        limits = ["--commits", str(given.commits), "--seconds", str(given.seconds)]
        try:
            subprocess.run([*command, *limits], check=False, env={**os.environ})
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
