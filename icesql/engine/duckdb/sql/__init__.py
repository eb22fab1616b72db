"""The text of a query as DuckDB gets it: relations spliced in, calls checked, types mixed.

In: a sqlglot tree. Out: text, or an error that names what DuckDB must not run. May import: what
``engine.duckdb`` may.
"""
