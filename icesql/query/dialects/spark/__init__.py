"""Spark's dialect (also for Databricks and Hive): its types, functions, operators and clauses.

The function table is ``grammar/spark_functions.txt``. The semantics are those of Spark 4 in its
default ANSI mode, tested against PySpark: see ``tests/query/dialects/spark_values.jsonl``.
"""
