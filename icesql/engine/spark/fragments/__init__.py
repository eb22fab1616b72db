"""Parts of a query that run on DuckDB inside Spark's tasks, beside their scan.

In: a bound query and its plans. Out: a job of fragments and what is left for Spark or the driver.
May import: what ``engine.spark`` may.
"""
