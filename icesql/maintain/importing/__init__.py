"""Parquet files that others wrote, as data files of a table: where they lie and what is in them."""
