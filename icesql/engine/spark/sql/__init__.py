"""Rewrite DuckDB's SQL as Spark SQL with the same meaning, or refuse a construct by name.

In: a sqlglot tree with the types of its columns. Out: a tree that Spark's dialect can write. May
import: sqlglot, ``engine.spark.types``, errors.
"""
