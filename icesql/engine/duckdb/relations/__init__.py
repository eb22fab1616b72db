"""Relations that DuckDB can query over the files of a scan.

In: file tasks and footers. Out: relations over Parquet files without their deleted rows, and the
groups of files that only ``read`` can read. May import: what ``engine.duckdb`` may.
"""
