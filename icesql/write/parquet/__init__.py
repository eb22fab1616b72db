"""How columns are encoded in Parquet files."""
