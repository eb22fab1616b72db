"""DuckDB's SQL rewritten as Spark SQL of the same meaning, or refused by name.

In: a sqlglot tree with the types of its columns. Out: a tree that Spark's dialect can write. May
import: sqlglot, ``engine.spark.types``, errors.
"""
