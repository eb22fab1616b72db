"""Import Parquet files of other writers as data files: find them, and check their columns."""
