"""The process beside, of a Python that has PySpark alone: it asks Java what it is told line by line."""

from __future__ import annotations

import json
import sys


def serve() -> None:
    """A session, and the answers to what comes on the standard input."""
    from pyspark.sql import SparkSession

    given = json.loads(sys.stdin.readline())
    catalog = "spark.sql.catalog.c"
    settings = {
        "spark.master": "local[1]", "spark.driver.memory": "1g", "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": given["jars"], "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.extensions":
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.cache-enabled": "false",
        f"{catalog}.warehouse": given["warehouse"],
    }  # fmt: skip
    if given["kind"] == "folder":
        settings[f"{catalog}.type"] = "hadoop"
    elif given["kind"] == "rest":
        settings |= {f"{catalog}.type": "rest", f"{catalog}.uri": given["uri"]}
    else:
        settings |= {
            f"{catalog}.type": "jdbc", f"{catalog}.uri": f"jdbc:sqlite:{given['database']}",
            f"{catalog}.clients": "1", f"{catalog}.jdbc.schema-version": "V1",
        }  # fmt: skip
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps({"rows": []}), flush=True)
    for line in sys.stdin:
        try:
            found = spark.sql(json.loads(line)["sql"]).collect()
            told = {"rows": [[*each] for each in found]}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {str(error)[:500]}"}
        print(json.dumps(told, default=str), flush=True)


if __name__ == "__main__":
    serve()
