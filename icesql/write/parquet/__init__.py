"""Encode columns in Parquet files."""
