"""What DuckDB tells of its functions, for people who write SQL."""
