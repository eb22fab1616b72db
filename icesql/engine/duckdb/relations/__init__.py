"""The files of a scan as relations that DuckDB can query.

In: file tasks and footers. Out: relations over Parquet files with their deletes, and the groups of
files that only ``read`` can read. May import: what ``engine.duckdb`` may.
"""
