"""Spark's dialect (Databricks' and Hive's too): its types, functions, operators and clauses.

The function table is ``grammar/spark_functions.txt``. The meaning is that of Spark 4 in its
default ANSI mode, and PySpark is the judge: see ``tests/query/dialects/spark_values.jsonl``.
"""
