"""MERGE of some keys into a large table: icesql, DuckDB's own table, and PyIceberg's upsert.

    python merging.py FOLDER [--rows 60000000] [--keys 1000000] [--version 3] [--pyiceberg]

Each way runs in a process of its own, which tells its wall time, its CPU time and its greatest
memory; compare CPU times where the machine does other things, too. The floor is a SELECT of the key
column joined with the same source. Keys are spread over the whole table, a tenth of them new.
``--pyiceberg`` takes minutes for a million keys; version 2 alone.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
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


def words(given: argparse.Namespace) -> dict[str, Any]:
    step = max(given.rows // given.keys, 1)
    return {"rows": given.rows, "keys": given.keys, "step": step}


def icesql_way(given: argparse.Namespace, way: str) -> None:
    import icesql

    folder = Path(given.folder) / "wh"
    folder.mkdir(parents=True, exist_ok=True)
    name = "s." + way.replace(" ", "_").replace("*", "all")
    with icesql.connect(warehouse=str(folder)) as con:
        con.execute(f"SET memory_limit = '{given.memory}'")
        if way == "fill":
            con.execute("CREATE SCHEMA s")
            for each in WAYS:
                other = "s." + each.replace(" ", "_").replace("*", "all")
                con.execute(
                    f"CREATE TABLE {other} ({COLUMNS}) TBLPROPERTIES ("
                    f"'format-version' = '{given.version}', 'write.merge.mode' = 'merge-on-read')"
                )
                con.execute(f"INSERT INTO {other} {ROW.format(**words(given))}")
            return
        source = SOURCE.format(**words(given))
        sql = WAYS[way].format(t=name, source=source, all="*")
        told(lambda: con.execute(sql).fetchall())


def duckdb_way(given: argparse.Namespace, way: str) -> None:
    import duckdb

    con = duckdb.connect(str(Path(given.folder) / "native.duckdb"))
    con.execute(f"SET memory_limit = '{given.memory}'")
    if way == "fill":
        con.execute(f"CREATE TABLE base AS {ROW.format(**words(given))}")
        return
    con.execute("BEGIN")
    source = SOURCE.format(**words(given))
    sql = WAYS[way].format(t="base", source=source, all="*")
    told(lambda: con.execute(sql).fetchall())
    con.execute("ROLLBACK")


def pyiceberg_way(given: argparse.Namespace, way: str) -> None:
    """``upsert`` of a table of the same rows, copy-on-write as it is there."""
    import duckdb
    from pyiceberg.catalog.sql import SqlCatalog

    folder = Path(given.folder) / "pyiceberg"
    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    if way == "fill":
        rows = duckdb.sql(ROW.format(**words(given))).arrow().read_all()
        catalog.create_namespace("s")
        catalog.create_table("s.base", rows.schema).append(rows)
        return
    source = duckdb.sql(SOURCE.format(**words(given))).arrow().read_all()
    table = catalog.load_table("s.base")
    told(lambda: table.upsert(source, join_cols=["k"]))


def told(work: Any) -> None:
    before, begun = cpu(), time.perf_counter()
    found = work()
    wall, used = time.perf_counter() - begun, cpu() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{wall:8.2f} s  {used:8.2f} s CPU  {peak:6.2f} GiB  {str(found)[:60]}", flush=True)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


RUN = {"icesql": icesql_way, "duckdb": duckdb_way, "pyiceberg": pyiceberg_way}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=60_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--version", type=int, default=3)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--pyiceberg", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        RUN[given.one[0]](given, given.one[1])
        return 0
    engines = [each for each in RUN if each != "pyiceberg" or given.pyiceberg]
    failed = 0
    for engine in engines:
        ways = ["update * and insert *"] if engine == "pyiceberg" else list(WAYS)
        for way in ("fill", *ways):
            print(f"{engine:10} {way:24}", end=" " if way != "fill" else "\n", flush=True)
            command = [sys.executable, __file__, *sys.argv[1:], "--one", engine, way]
            failed += subprocess.run(command, check=False).returncode != 0
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main())
