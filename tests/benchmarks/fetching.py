"""Rows as Python values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sides import side_by_side
from tables import described, warehouse

# Columns over ``range``; NULLs in one row of ten where not said otherwise.
SCHEMAS = {
    "integers": "range AS a, (range % 1000)::INTEGER AS b, (range % 7)::INTEGER AS c",
    "doubles": "range / 7.0::DOUBLE AS a, sqrt(range) AS b",
    "strings": "'row ' || range AS a, 'x' || (range % 50) AS b",
    "booleans": "range % 3 = 0 AS a, range % 2 = 0 AS b",
    "dates": "DATE '2000-01-01' + (range % 9000)::INTEGER AS a, "
    "CASE WHEN range % 10 > 0 THEN DATE '1900-01-01' + (range % 90)::INTEGER END AS b",
    "timestamps": "TIMESTAMP '2000-01-01' + INTERVAL (range) SECOND AS a, "
    "CASE WHEN range % 10 > 0 THEN TIMESTAMP '1900-01-01' + INTERVAL (range) SECOND END AS b",
    "decimals": "(range / 100)::DECIMAL(12, 2) AS a",
    "wide_decimals": "(range / 100)::DECIMAL(30, 2) AS a",
    "uuids": "md5(range::VARCHAR)::UUID AS a",
    "binary": "('r' || range)::BLOB AS a",
    "nulls": "CASE WHEN range % 2 = 0 THEN range END AS a, "
    "CASE WHEN range % 3 = 0 THEN 'x' || range END AS b, "
    "CASE WHEN range % 5 = 0 THEN range / 3.0::DOUBLE END AS c",
    "mixed": "range AS id, 'customer ' || (range % 9999) AS name, range / 3.0::DOUBLE AS amount, "
    "DATE '2020-01-01' + (range % 900)::INTEGER AS day, "
    "TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND AS at, "
    "(range % 100000 / 100)::DECIMAL(10, 2) AS price, "
    "CASE WHEN range % 10 > 0 THEN range % 7 END AS n",
    "lists": "[range, range + 1, NULL] AS a",
    "string_lists": "['a' || range, 'b'] AS a",
    "structs": "{'a': range, 'b': 'x' || range} AS a",
    "time_structs": "{'a': range, 'b': TIMESTAMP '2020-01-01' + INTERVAL (range) SECOND} AS a",
    "maps": "MAP {'k': range} AS a",
}


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
