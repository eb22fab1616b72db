"""DuckDB without a query: the live rows of scan tasks, and rows in an order, as Arrow batches.

In: a combined task, or batches with keys. Out: batches. May import: what ``engine.duckdb`` may.
"""
