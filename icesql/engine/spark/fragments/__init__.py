"""Parts of a query that DuckDB runs inside Spark's tasks, together with their scan.

In: a bound query and its plans. Out: a job of fragments, and the rest for Spark or the driver.
May import: what ``engine.spark`` may.
"""
