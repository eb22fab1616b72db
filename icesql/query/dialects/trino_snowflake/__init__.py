"""The dialects of Trino and Snowflake: a function table for each, and their operators.

In: a tree and the types of its columns. Out: the same tree translated to DuckDB. May import:
query, sql, iceberg, errors.
"""
