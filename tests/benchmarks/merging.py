"""MERGE of some keys into a large table: icesql, DuckDB's own table, and PyIceberg's upsert.

    python merging.py FOLDER [--rows 6000000] [--keys 60000] [--version 3] [--runs 3]
        [--memory 2GB] [--seconds 60] [--engines icesql,duckdb,pyiceberg]

Each way runs in a process of its own, which tells its wall time, its CPU time and its greatest
memory; compare CPU times where the machine does other things, too. The floor is a SELECT of the key
column joined with the same source. Keys are spread over the whole table, a tenth of them new. All
ways begin with the same rows: icesql's table is rolled back, DuckDB's is a copy of its file, whose
COMMIT is on the clock, and PyIceberg's, of version 2 and copy-on-write as it is there, is upserted
once. Each process does the same to a table of ten rows first: what is measured is a statement in a
session, not the import of modules. A way that takes longer than ``--seconds`` is stopped and said
to be. A million keys into many rows: ``--rows 60000000 --keys 1000000 --engines icesql,duckdb``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

COLUMNS = "k BIGINT, a INT, b DOUBLE, c VARCHAR, d DATE"
ROW = (
    "SELECT i::BIGINT AS k, ((i * 7) % 1000)::INT AS a, i / 3 AS b, 'row ' || (i % 1000) AS c, "
    "DATE '2020-01-01' + (i % 1000)::INT AS d FROM range({rows}) r(i)"
)
# Every tenth key is behind the last of the table.
SOURCE = (
    "SELECT CASE WHEN i % 10 = 0 THEN {rows} + i ELSE i * {step} + 3 END::BIGINT AS k, 1::INT AS a, "
    "2.5::DOUBLE AS b, 'new' AS c, DATE '2021-01-01' AS d FROM range({keys}) r(i)"
)
ON = " t USING ({source}) s ON t.k = s.k "
ALL = "WHEN MATCHED THEN UPDATE SET {all} WHEN NOT MATCHED THEN INSERT {all}"
WAYS = {
    "select of the key": "SELECT count(*), sum(t.k) FROM {t} t JOIN ({source}) s ON t.k = s.k",
    "update * and insert *": "MERGE INTO {t}" + ON + ALL,
    "update of one column": "MERGE INTO {t}" + ON + "WHEN MATCHED THEN UPDATE SET a = s.a + 1",
    "insert of new keys": "MERGE INTO {t}" + ON + "WHEN NOT MATCHED THEN INSERT {all}",
    "delete": "MERGE INTO {t}" + ON + "WHEN MATCHED THEN DELETE",
}


FEW = 10
SMALL = {"rows": FEW, "keys": 2, "step": 5}
MERGED = "update * and insert *"


def words(given: argparse.Namespace) -> dict[str, Any]:
    step = max(given.rows // given.keys, 1)
    return {"rows": given.rows, "keys": given.keys, "step": step}


def statement(way: str, table: str, numbers: dict[str, Any]) -> str:
    return WAYS[way].format(t=table, source=SOURCE.format(**numbers), all="*")


def icesql_way(given: argparse.Namespace, way: str) -> None:
    import icesql

    folder = Path(given.folder) / "wh"
    folder.mkdir(parents=True, exist_ok=True)
    with icesql.connect(warehouse=str(folder)) as con:
        con.execute(f"SET memory_limit = '{given.memory}'")
        if way == "fill":
            con.execute("CREATE SCHEMA s")
            for name, rows in (("s.t", given.rows), ("s.few", FEW)):
                con.execute(
                    f"CREATE TABLE {name} ({COLUMNS}) TBLPROPERTIES ("
                    f"'format-version' = '{given.version}', 'write.merge.mode' = 'merge-on-read')"
                )
                con.execute(f"INSERT INTO {name} {ROW.format(rows=rows)}")
            return
        try:
            con.execute(statement(way, "s.few", SMALL)).fetchall()
            told(lambda: con.execute(statement(way, "s.t", words(given))).fetchall())
        finally:
            for name in ("s.t", "s.few"):
                found = con.execute(
                    f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at"
                )
                first = found.fetchall()[0][0]
                con.execute(f"CALL system.rollback_to_snapshot('{name}', {first})")


def duckdb_way(given: argparse.Namespace, way: str) -> None:
    import duckdb

    base = Path(given.folder) / "native.duckdb"
    if way == "fill":
        with duckdb.connect(base) as con:
            for name, rows in (("base", given.rows), ("few", FEW)):
                con.execute(f"CREATE TABLE {name} AS {ROW.format(rows=rows)}")
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        shutil.copy(base, folder)
        with duckdb.connect(Path(folder) / base.name) as con:
            con.execute(f"SET memory_limit = '{given.memory}'")
            con.execute("SET enable_progress_bar = false")
            con.execute(statement(way, "few", SMALL)).fetchall()
            told(lambda: con.execute(statement(way, "base", words(given))).fetchall())


def pyiceberg_way(given: argparse.Namespace, way: str) -> None:
    import duckdb
    from pyiceberg.catalog.sql import SqlCatalog

    base = Path(given.folder) / "pyiceberg"
    base.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}")
    if way == "fill":
        catalog.create_namespace("s")
        for name, count in (("s.base", given.rows), ("s.few", FEW)):
            rows = duckdb.sql(ROW.format(rows=count)).to_arrow_table()
            catalog.create_table(name, rows.schema).append(rows)
        return
    few = duckdb.sql(SOURCE.format(**SMALL)).to_arrow_table()
    source = duckdb.sql(SOURCE.format(**words(given))).to_arrow_table()
    catalog.load_table("s.few").upsert(few, join_cols=["k"])
    table = catalog.load_table("s.base")
    told(lambda: table.upsert(source, join_cols=["k"]).rows_updated)


def told(work: Any) -> None:
    before, begun = cpu(), time.perf_counter()
    found = work()
    wall, used = time.perf_counter() - begun, cpu() - before
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
    print(f"told {wall} {used} {peak} {str(found)[:40]}", flush=True)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


RUN = {"icesql": icesql_way, "duckdb": duckdb_way, "pyiceberg": pyiceberg_way}


def run(given: argparse.Namespace, engine: str, way: str) -> list[str] | None:
    """What a process tells of a way; None if it took too long."""
    command = [sys.executable, __file__, *sys.argv[1:], "--one", engine, way]
    environment = dict(os.environ)
    # Modules are compiled once, as where they are installed.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    limit = None if way == "fill" else given.seconds
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env=environment, timeout=limit, check=True
        )
    except subprocess.TimeoutExpired:
        return None
    lines = [each.split(maxsplit=4) for each in done.stdout.splitlines()]
    return next((each[1:] for each in lines if each[:1] == ["told"]), [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--keys", type=int, default=60_000)
    parser.add_argument("--version", type=int, default=3)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engines", default=",".join(RUN))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        RUN[given.one[0]](given, given.one[1])
        return
    engines = given.engines.split(",")
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    for engine in engines:
        made = Path(given.folder) / f"{engine}-{given.rows}-{given.version}"
        if not made.exists():
            run(given, engine, "fill")
            made.touch()
    ways = [(engine, way) for engine in engines for way in WAYS if engine != "pyiceberg"]
    ways += [("pyiceberg", MERGED)] * ("pyiceberg" in engines)
    taken: dict[tuple[str, str], list[list[str] | None]] = {}
    for number in range(given.runs):
        for each in ways:
            # One run of what takes long; an upsert of PyIceberg's changes its table.
            if number == 0 or (each[0] != "pyiceberg" and None not in taken[each]):
                taken.setdefault(each, []).append(run(given, *each))
    floors: dict[str, list[float]] = {}
    print(f"{given.keys:,} keys into {given.rows:,} rows; medians, x of the engine's own SELECT")
    for (engine, way), found in taken.items():
        kept = [each for each in found if each is not None]
        if not kept:
            print(f"{engine:10} {way:22} more than {given.seconds:.0f} s, stopped")
            continue
        wall, used = (statistics.median(float(each[n]) for each in kept) for n in (0, 1))
        floor = floors.setdefault(engine, [wall, used])
        peak = max(int(each[2]) for each in kept)
        print(
            f"{engine:10} {way:22} {wall:7.2f} s ({wall / floor[0]:5.2f} x) {used:7.2f} s CPU "
            f"({used / floor[1]:5.2f} x) {peak:6} MB"
        )


if __name__ == "__main__":
    main()
