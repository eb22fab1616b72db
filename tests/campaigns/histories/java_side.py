"""The process beside, of a Python that has PySpark alone: it asks Java what it is told line by line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow


def serve() -> None:
    """A session, and the answers to what comes on the standard input."""
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.campaigns.java_session import java_session

    given = json.loads(sys.stdin.readline())
    catalog = "spark.sql.catalog.c"
    settings = {
        "spark.master": "local[1]", "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        f"{catalog}.cache-enabled": "false",
    }  # fmt: skip
    if given["kind"] == "rest":
        settings |= {f"{catalog}.type": "rest", f"{catalog}.uri": given["uri"]}
    database = given["database"] if given["kind"] == "sqlite" else None
    spark = java_session(given["jars"], given["warehouse"], database, settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    place = f"{given['folder']}/answer.arrow"
    print(json.dumps({"file": ""}), flush=True)
    for line in sys.stdin:
        try:
            found = run(spark, json.loads(line)["sql"])
            with pyarrow.ipc.new_file(place, found.schema) as file:
                file.write(found)
            told = {"file": place}
        except Exception as error:
            causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
            told = {"error": f"{type(error).__name__}: {str(error)[:300]} {' '.join(causes)}"}
        print(json.dumps(told), flush=True)


def run(spark: Any, sql: str) -> pyarrow.Table:
    """The rows of a statement. Spark's ALTER TABLE refuses defaults, which Java itself takes."""
    given = re.fullmatch(r"ALTER TABLE (\S+) ADD COLUMN (\w+) (\w+) DEFAULT (.*)", sql)
    if given is None:
        return spark.sql(sql).toArrow()
    iceberg = spark._jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, given[1])
    names = {"INT": "Integer", "BIGINT": "Long"}
    kind = f"{names.get(given[3], given[3].capitalize())}Type"
    made = getattr(iceberg.types, f"Types${kind}").get()
    value = iceberg.expressions.Expressions.lit(json.loads(given[4].replace("'", '"')))
    table.updateSchema().addColumn(given[2], made, value).commit()
    return pyarrow.table({})


if __name__ == "__main__":
    serve()
