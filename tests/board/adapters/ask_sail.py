"""Sail: a Spark Connect server of its own, asked by PySpark's client."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from protocol import COLUMNS, Question, Task, latest_metadata, select, serve, values


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
    ask, name = session().sql, "t" + Path(task["folder"]).name
    columns = ", ".join(f"{each} {kind}" for each, kind in COLUMNS.items())
    partition = f" PARTITIONED BY ({task['partition']})" if task["partition"] else ""
    place = f" LOCATION 'file://{task['folder']}/t'"
    ask(f"CREATE TABLE {name} ({columns}) USING iceberg{partition}{place}").collect()
    for batch in task["batches"]:
        ask(f"INSERT INTO {name} VALUES {values(batch)}").collect()
    if task["delete"]:
        ask(f"DELETE FROM {name} WHERE {task['delete']}").collect()
    return latest_metadata(task["folder"])


if __name__ == "__main__":
    serve(["pysail", "pyspark-client"], answer, write, session)
