"""The values in the tests of Spark's dialect are those of the installed PySpark."""

from __future__ import annotations

import random
from typing import Any

from tests.query.dialects.canonical import lines
from tests.query.dialects.spark_rows import rows
from tests.query.dialects.test_spark import values
from tests.spark.conftest import needs

DRAWN = 40
# Spark's defaults, which sessions of icesql's engine may change.
DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}


@needs("4.0", why="the values are those of Spark 4")
def test_a_sample_of_the_values_is_what_pyspark_gives(connect: Any) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate().newSession()
    for name, value in DEFAULTS.items():
        spark.conf.set(name, value)
    spark.createDataFrame(rows()).coalesce(1).createOrReplaceTempView("t")
    known = {
        sql: rows
        for sql, rows in values().items()
        # Python shows instants in its own time zone.
        if rows is not None and "tz" not in sql and "TIMESTAMP" not in sql.upper()
    }
    for sql in random.Random(4).sample(sorted(known), DRAWN):
        found = lines(spark.sql(sql).collect(), sql)
        assert found == known[sql], sql
