"""DuckDB's descriptions of its functions, for people who write SQL."""
