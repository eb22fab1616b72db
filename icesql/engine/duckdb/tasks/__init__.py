"""Rows from DuckDB without a query: live rows of scan tasks and sorted rows, as Arrow batches.

In: a combined task, or batches with keys. Out: batches. May import: what ``engine.duckdb`` may.
"""
