"""Spark with Iceberg's runtime and its JDBC catalog, in which each table is registered.

The environment variable BOARD_ICEBERG_JARS names the jars, separated by commas: Iceberg's runtime and
SQLite's driver.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

from protocol import Question, Task, select, written_by_sql

CATALOG = {
    "": "org.apache.iceberg.spark.SparkCatalog",
    ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
}


@functools.cache
def session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars", os.environ["BOARD_ICEBERG_JARS"])
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config(
        "spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    )
    folder = tempfile.mkdtemp()
    places = {".uri": f"jdbc:sqlite:{folder}/catalog.db", ".warehouse": folder}
    for name, value in (CATALOG | places).items():
        builder = builder.config(f"spark.sql.catalog.board{name}", value)
    opened = builder.getOrCreate()
    opened.sql("CREATE NAMESPACE board.db")
    return opened


@functools.cache
def registered(metadata: str) -> str:
    name = f"board.db.t{registered.cache_info().misses}"
    session().sql(f"CALL board.system.register_table('{name[6:]}', '{metadata}')").collect()
    return name


def answer(question: Question) -> list:
    snapshot = question["snapshot_id"]
    travel = "" if snapshot is None else f" VERSION AS OF {snapshot}"
    return session().sql(select(question, registered(question["metadata"]) + travel)).collect()


def write(task: Task) -> str:
    name, place = "board.db.w" + Path(task["folder"]).name, f" LOCATION 'file://{task['folder']}/t'"
    return written_by_sql(lambda sql: session().sql(sql).collect(), task, name, place)
