"""PySpark's daemon that forks workers, with what they would import: each costs a second without.

A worker ends with each task that fails, and after a minute without work.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

USED = """
    pandas pyarrow.parquet icesql.read.task icesql.engine.spark.fragments.job
    icesql.engine.spark.writing.job icesql.datasource.read
    icesql.datasource.write
"""

if __name__ == "__main__":
    for name in USED.split():
        import_module(name)
    manager()
