"""The local engine: DuckDB runs the query and reads most Parquet files; the rest come as Arrow.

In: a BoundQuery and its ScanPlans. Out: results as ``engine.engines`` declares. May import:
what ``engine`` may, and duckdb.
"""
