"""Record what PySpark returns for statements of its dialect.

    python tests/campaigns spark_dialect [--berlin]

A line of ``tests/query/dialects/spark_values.jsonl`` is a statement and its rows, null where Spark
ends by an error; a line that has the statement alone gets what PySpark gives. With ``--berlin`` those
of ``spark_values_berlin.jsonl`` do, in a zone whose clocks repeat an hour. ``tests/query/dialects``
compares icesql with both.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.query.dialects.canonical import lines

VALUES = Path(__file__).parents[1] / "query" / "dialects" / "spark_values.jsonl"


def main(*, berlin: bool = False) -> None:
    """Fill in the missing rows."""
    os.environ["TZ"] = "UTC"
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import expr

    from tests.query.dialects.spark_rows import rows

    file = VALUES.with_stem("spark_values_berlin") if berlin else VALUES
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", "Europe/Berlin" if berlin else "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:TieredStopAtLevel=1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    # PySpark treats times without zone as instants in the session's zone.
    table = spark.createDataFrame(rows()).withColumn("ts", expr("CAST(ts AS TIMESTAMP_NTZ)"))
    table.coalesce(1).createOrReplaceTempView("t")
    found = [json.loads(each) for each in file.read_text(encoding="utf-8").splitlines()]
    for each in found:
        if len(each) == 1:
            try:
                each.append(lines(spark.sql(each[0]).collect(), each[0]))
            except Exception:  # whatever Spark refuses, it refuses
                each.append(None)
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found)
    file.write_text(text, encoding="utf-8")
