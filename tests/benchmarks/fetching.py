"""Rows as Python values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sides import side_by_side
from tables import described, warehouse

from tests.tables import read_table

SCHEMAS = dict(read_table(__file__, "fetching.tsv"))


def everything(cursor: Any) -> int:
    return len(cursor.fetchall())


def in_lots(cursor: Any) -> int:
    count = 0
    while rows := cursor.fetchmany(1_000):
        count += len(rows)
    return count


def one_by_one(cursor: Any) -> int:
    if hasattr(cursor, "__next__"):
        return sum(1 for _ in cursor)
    return sum(1 for _ in iter(cursor.fetchone, None))


WAYS = {"fetchall": everything, "fetchmany": in_lots, "iteration": one_by_one}


def icesql(warehouse: str, namespace: str, **_: Any) -> Callable[[str, str], Any]:
    import icesql

    connection = icesql.connect(warehouse=warehouse)
    return lambda name, way: [[WAYS[way](connection.execute(f"SELECT * FROM {namespace}.{name}"))]]


def duckdb(tables: dict[str, Any], **_: Any) -> Callable[[str, str], Any]:
    import duckdb

    connection = duckdb.connect()

    def run(name: str, way: str) -> Any:
        return [[WAYS[way](connection.execute(f"FROM read_parquet({tables[name]['files']})"))]]

    return run


def fetching(
    cache: Path, rows: int = 1_000_000, rounds: int = 3, only: str = "", peers: str = "duckdb"
) -> int:
    """All rows of a table by each method of a cursor, beside DuckDB's own over the same file."""
    statements = (
        f"CREATE TABLE {name} AS SELECT {columns} FROM range({rows})"
        for name, columns in SCHEMAS.items()
    )
    given = described(warehouse(cache / f"fetching-{rows}", statements))
    cases = {f"{name}-{way}": (name, way) for name in SCHEMAS for way in WAYS}
    names = ("icesql", *peers.split(","))
    return side_by_side(
        cache, names, given, cases, module="fetching", rounds=rounds, warm=1, only=only
    )
