"""The engines of sides, each opened over the tables that ``tables.described`` describes.

Each function returns another that runs a statement and fetches all of its rows. Only the standard
library is imported at the top, as each engine has an environment of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[str], Any]


def icesql(warehouse: str, namespace: str, **options: Any) -> Run:
    import icesql

    named = {name: options[name] for name in ("engine", "spark") if name in options}
    connection = icesql.connect(warehouse=warehouse, files=True, **named)
    connection.execute(f"USE {namespace}")
    return lambda sql: connection.execute(sql.replace("{system}", "system")).fetchall()


def files(tables: dict[str, Any], **_: Any) -> Run:
    """The floor: DuckDB over the lists of data files, without any Iceberg."""
    import duckdb

    connection = duckdb.connect()
    for name, table in tables.items():
        listed = f"{table['files']}, hive_partitioning = false"
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({listed})")
    return lambda sql: connection.execute(sql).fetchall()


def with_extensions(*names: str, database: str = ":memory:") -> Any:
    """A connection of DuckDB with extensions that are installed as packages."""
    import duckdb

    connection = duckdb.connect(database, config={"allow_unsigned_extensions": "true"})
    site = Path(duckdb.__file__).parents[1]
    for each in names:
        (path,) = site.glob(f"duckdb_extension_{each}/**/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    return connection


def extension(tables: dict[str, Any], **_: Any) -> Run:
    connection = with_extensions("avro", "iceberg")
    for name, table in tables.items():
        connection.execute(f"CREATE VIEW {name} AS FROM iceberg_scan('{table['metadata']}')")
    return lambda sql: connection.execute(sql).fetchall()


def generated() -> Callable[[str, str, float], None]:
    """Write the tables and queries of TPC-H or TPC-DS into a folder."""

    def run(folder: str, name: str, scale: float) -> None:
        connection = with_extensions(name, database=f"{folder}/made.db")
        connection.execute(f"CALL {'dsdgen' if name == 'tpcds' else 'dbgen'}(sf = {scale})")
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
        queries = connection.execute(f"SELECT query_nr, query FROM {name}_queries()").fetchall()
        Path(folder, "queries.json").write_text(json.dumps(dict(queries)))
        connection.close()
        Path(folder, "made.db").unlink()

    return run


# ------------------------------------------------------------------ Spark


def session(settings: dict[str, str]) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark(settings: dict[str, str], **given: Any) -> Run:
    """icesql on Spark."""
    return icesql(engine="spark", spark=session(settings), **given)


def stages(settings: dict[str, str], limit: str, parts: int, **given: Any) -> Run:
    """Stages of DuckDB's SQL over the tables of TPC-H; the statement is the name of its query."""
    import tempfile

    from stages import Stages

    import icesql

    opened = session(settings)
    connection = icesql.connect(warehouse=given["warehouse"], engine="spark", spark=opened)
    connection.execute(f"USE {given['namespace']}")
    return Stages(opened, connection, limit, parts, Path(tempfile.mkdtemp(), "peaks"))


def joins(settings: dict[str, str], limit: str, broadcast: int, **given: Any) -> Run:
    """icesql on Spark, which joins the sides above a limit itself."""
    from stages import leave_joins

    if limit == "low":
        leave_joins(broadcast)
        settings = {**settings, "spark.sql.adaptive.autoBroadcastJoinThreshold": str(broadcast)}
    return spark(settings, **given)


def reader(tables: dict[str, Any], settings: dict[str, str], **_: Any) -> Run:
    """Spark's own reader of Parquet over the data files."""
    opened = session(settings)
    for name, table in tables.items():
        opened.read.parquet(*table["files"]).createOrReplaceTempView(name)
    return lambda sql: opened.sql(sql).collect()


def iceberg(warehouse: str, namespace: str, settings: dict[str, str], **_: Any) -> Run:
    """Iceberg's own jar on Spark; with Comet's settings Comet runs what it can."""
    opened = session({**settings, "spark.sql.catalog.c.warehouse": warehouse})
    opened.sql(f"USE c.{namespace}")
    return lambda sql: opened.sql(sql.replace("{system}", "c.system")).collect()


comet = iceberg
