"""Sail: a Spark Connect server of its own, asked by PySpark's client."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from protocol import Question, Task, select, written_by_sql


@functools.cache
def session() -> Any:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    port = server.listening_address[1]
    opened = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    opened.server = server  # it stops with the last reference to it
    opened.conf.set("spark.sql.session.timeZone", "UTC")
    return opened


def answer(question: Question) -> list:
    reader = session().read.format("iceberg")
    if question["snapshot_id"] is not None:
        reader = reader.option("snapshotId", str(question["snapshot_id"]))
    reader.load(str(Path(question["metadata"]).parents[1])).createOrReplaceTempView("t")
    return session().sql(select(question, "t")).collect()


def write(task: Task) -> str:
    name, place = "t" + Path(task["folder"]).name, f" LOCATION 'file://{task['folder']}/t'"
    return written_by_sql(lambda sql: session().sql(sql).collect(), task, name, place)
