"""A session of Spark SQL with Iceberg's Java runtime: the referee of the campaigns.

For PySpark 4.1 its jars are ``org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0`` and
``org.xerial:sqlite-jdbc:3.47.1.0`` (``mvn dependency:copy -Dartifact=…``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def java_session(
    jars: str,
    warehouse: Path | str,
    database: Path | str | None = None,
    *,
    name: str = "c",
    settings: dict[str, str] | None = None,
) -> Any:
    """A quiet session with a catalog of tables in ``warehouse``.

    The catalog is the SQLite file ``database``, or the folders alone where that is None.
    ``jars`` are paths with colons between them.
    """
    from pyspark.sql import SparkSession

    catalog = f"spark.sql.catalog.{name}"
    known = {
        "spark.master": "local[2]",
        "spark.driver.extraClassPath": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop" if database is None else "jdbc",
        f"{catalog}.warehouse": str(warehouse),
    }
    if database is not None:
        known |= {
            f"{catalog}.uri": f"jdbc:sqlite:{database}",
            f"{catalog}.clients": "1",
            f"{catalog}.jdbc.schema-version": "V1",
        }
    builder = SparkSession.builder
    for key, value in (known | (settings or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
