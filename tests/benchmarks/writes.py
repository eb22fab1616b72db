"""INSERT and MERGE, each run in a process of its own over files left as they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import engines
from frame import Table, turns
from sides import fresh, opened
from tables import CACHE, NAMESPACE, described, raw, warehouse

icesql, files = engines.icesql, engines.files


def pyiceberg(warehouse: str, source: str = "", rows: int = 0, **_: Any) -> Callable[[str], Any]:
    """PyIceberg's append of a Parquet file to a new table, or its upsert of the rows of a query."""
    import duckdb
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{warehouse}/c.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("p")
    if source:
        codec = {"write.parquet.compression-codec": "zstd"}
        table = catalog.create_table("p.t", pq.read_schema(source), properties=codec)
        return lambda _: table.append(pq.read_table(source))
    before = duckdb.sql(ROW.format(rows=rows)).to_arrow_table()
    table = catalog.create_table("p.t", before.schema)
    table.append(before)

    def run(sql: str) -> None:
        table.upsert(duckdb.sql(sql).to_arrow_table(), join_cols=["k"])

    return run


def insert(
    cache: Path = CACHE, scale: float = 1.0, rounds: int = 3, peers: str = "files,pyiceberg"
) -> int:
    """INSERT of lineitem, whole and by month, beside DuckDB's COPY and PyIceberg's append."""
    source, folder = raw(cache, "tpch", scale) / "lineitem.parquet", cache / "insert"
    given, table = {**described(warehouse(folder, [])), "source": str(source)}, Table()
    for case, partitions in (("whole", ""), ("month", "PARTITIONED BY (months(l_shipdate))")):
        created = f"CREATE TABLE {NAMESPACE}.t {partitions} AS SELECT * FROM '{source}' LIMIT 0"
        ways = {}
        for name in ("icesql", *peers.split(",")):
            text = f"INSERT INTO {NAMESPACE}.t SELECT * FROM '{source}'"
            texts = [created, text]
            if name == "files":
                texts = [f"COPY (FROM '{source}') TO '{folder}/copy.parquet' (CODEC zstd)"]
            opening = partial(opened, cache, name, given, "writes")
            ways[name] = partial(fresh, opening, folder, *texts)
        table.line(case, turns(ways, rounds, warm=0), apart=ways)
    return table.end()


# ------------------------------------------------------------------ MERGE

ROW = (
    "SELECT i AS k, ((i * 7) % 1000)::INT AS a, i / 3 AS b, 'row ' || (i % 1000) AS c, "
    "DATE '2020-01-01' + (i % 1000)::INT AS d FROM range({rows}) r(i)"
)
# Keys are spread over the whole table; every tenth is behind its last one.
SOURCE = (
    "SELECT CASE WHEN i % 10 = 0 THEN {rows} + i ELSE i * {step} + 3 END::BIGINT AS k, 1::INT AS a, "
    "2.5::DOUBLE AS b, 'new' AS c, DATE '2021-01-01' AS d FROM range({keys}) r(i)"
)
ACTIONS = {
    "all": "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "update": "WHEN MATCHED THEN UPDATE SET a = s.a + 1",
    "insert": "WHEN NOT MATCHED THEN INSERT *",
    "delete": "WHEN MATCHED THEN DELETE",
}
_FEW = 10


def duckdb(warehouse: str, rows: int, **_: Any) -> Callable[[str], Any]:
    """DuckDB's own tables in a file."""
    import duckdb

    connection = duckdb.connect(f"{warehouse}/native.duckdb")
    for name, count in (("t", rows), ("few", _FEW)):
        connection.execute(f"CREATE TABLE {name} AS {ROW.format(rows=count)}")
    connection.execute("CHECKPOINT")
    return lambda sql: connection.execute(sql).fetchall()


def merge(
    cache: Path = CACHE,
    rows: int = 6_000_000,
    keys: int = 60_000,
    version: int = 3,
    memory: str = "2GB",
    rounds: int = 3,
    only: str = ",".join(ACTIONS),
    peers: str = "select,duckdb",
) -> int:
    """MERGE of some keys into many rows, beside a SELECT of the joined key and DuckDB's own table.

    ``--only all --peers pyiceberg`` has PyIceberg's upsert of the same rows.
    """
    properties = f"'format-version' = '{version}', 'write.merge.mode' = 'merge-on-read'"
    statements = [
        f"CREATE TABLE {name} TBLPROPERTIES ({properties}) AS {ROW.format(rows=count)}"
        for name, count in (("t", rows), ("few", _FEW))
    ]
    folder = warehouse(cache / f"merge-{rows}-{version}", statements)
    given, table = {**described(folder), "rows": rows}, Table()
    small = SOURCE.format(rows=_FEW, keys=2, step=5)
    large = SOURCE.format(rows=rows, keys=keys, step=max(rows // keys, 1))
    pairs = (("few", small), ("t", large))
    select = "SELECT count(*), sum(t.k) FROM {} t JOIN ({}) s ON t.k = s.k"
    for action in only.split(","):
        merged = f"MERGE INTO {{}} t USING ({{}}) s ON t.k = s.k {ACTIONS[action]}"
        ways = {}
        for name in ("icesql", *peers.split(",")):
            kind, text = ("icesql", select) if name == "select" else (name, merged)
            texts = [f"SET memory_limit = '{memory}'", *(text.format(*pair) for pair in pairs)]
            opening = partial(opened, cache, kind, given, "writes")
            ways[name] = partial(
                fresh, opening, folder, *([large] if name == "pyiceberg" else texts)
            )
        table.line(action, turns(ways, rounds, warm=0), apart=ways)
    return table.end()
