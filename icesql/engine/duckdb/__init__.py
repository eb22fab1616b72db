"""The local engine: DuckDB runs the query; it reads most Parquet files itself, the rest as Arrow.

In: a BoundQuery and its ScanPlans. Out: results as ``engine.protocol`` declares them. May import:
what ``engine`` may, and duckdb.
"""
