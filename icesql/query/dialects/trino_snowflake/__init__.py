"""Trino's and Snowflake's meanings: a table of functions each, and their operators.

In: a tree and the types of its columns. Out: the same tree in DuckDB's meaning. May import: query,
sql, iceberg, errors.
"""
