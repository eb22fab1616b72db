"""The local engine: DuckDB runs the query; it reads plain Parquet itself and the rest as Arrow.

In: a BoundQuery and its ScanPlans. Out: results as ``engine.protocol`` declares them. May import:
what ``engine`` may, and duckdb.
"""
