"""Many small commits to one table, and what they leave."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from frame import Table, Taken, turns
from process import Side
from sides import opened, together
from tables import CACHE

ROWS = 10
COLUMNS = "id BIGINT, seen TIMESTAMP, v DOUBLE, name VARCHAR"
INSERT = (
    f"INSERT INTO {{t}} SELECT {{n}} * {ROWS} + i AS id, TIMESTAMP '2026-01-01' AS seen, "
    f"i + 0.5::DOUBLE AS v, 'name ' || i AS name FROM range({ROWS}) r(i)"
)
SUM = "SELECT count(*), sum(id), sum(v) FROM {t}"
Run = Callable[[str, int], Any]


def _run(connection: Any, table: str, *compaction: str) -> Run:
    connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
    statements = {"commit": (INSERT,), "sum": (SUM,), "compaction": compaction}

    def run(what: str, number: int) -> Any:
        for each in statements[what]:
            rows = connection.execute(each.format(t=table, n=number)).fetchall()
        return rows if what == "sum" else []

    return run


def icesql(folder: str) -> Run:
    import icesql

    connection = icesql.connect(warehouse=folder)
    connection.execute("CREATE SCHEMA s")
    return _run(connection, "s.t", "CALL system.rewrite_data_files('{t}')")


def pyiceberg(folder: str) -> Run:
    import duckdb
    import pyarrow.compute as pc
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("s")
    first = duckdb.sql(f"CREATE TABLE t ({COLUMNS}); FROM t").to_arrow_table()
    table = catalog.create_table("s.t", first.schema)

    def run(what: str, number: int) -> Any:
        if what == "commit":
            values = INSERT.format(t="", n=number).removeprefix("INSERT INTO  ")
            table.append(duckdb.sql(values).to_arrow_table().cast(first.schema))
            return []
        rows = catalog.load_table("s.t").scan().to_arrow()
        return [[len(rows), pc.sum(rows["id"]).as_py(), pc.sum(rows["v"]).as_py()]]

    return run


def ducklake(folder: str) -> Run:
    """DuckLake in a file of DuckDB, into which it writes few rows."""
    from engines import with_extensions

    connection = with_extensions("ducklake")
    connection.execute(f"ATTACH 'ducklake:{folder}/l.db' AS l (DATA_PATH '{folder}/data')")
    merged = "CALL ducklake_merge_adjacent_files('l')"
    return _run(connection, "l.t", "CALL ducklake_flush_inlined_data('l')", merged)


def _commit(side: Side, numbers: Iterator[int]) -> Taken | None:
    return side("commit", next(numbers))


def commits(cache: Path = CACHE, commits: int = 3000, peers: str = "pyiceberg,ducklake") -> int:
    """Commits of ten rows: all, the first and the last tenth, a sum behind them, compaction."""
    table, names = Table(), ("icesql", *peers.split(","))
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / name.replace("/", "_") for name in names}
        for place in places.values():
            place.mkdir()

        def opening(name: str) -> Side:
            return opened(cache, name, {"folder": str(places[name])}, "commits")

        with together(names, opening) as sides:
            ways = {name: partial(_commit, side, count()) for name, side in sides.items()}
            taken = turns(ways, commits, warm=0)
            tenth = max(commits // 10, 1)
            slices = {"all": slice(None), "first": slice(tenth), "last": slice(-tenth, None)}
            for case, part in slices.items():
                table.line(case, {name: runs[part] for name, runs in taken.items()})
            for name in sides:
                sizes = [each.stat().st_size for each in places[name].rglob("*") if each.is_file()]
                print(f"{name} leaves {sum(sizes) / 1e6:,.1f} MB in {len(sizes):,} files")
            for case in ("sum", "compaction", "sum compacted"):
                what = case.partition(" ")[0]
                asked = [name for name in sides if case == "sum" or name != "pyiceberg"]
                ways = {name: partial(sides[name], what, 0) for name in asked}
                table.line(case, turns(ways, 5 if what == "sum" else 1, 0))
    return table.end()
