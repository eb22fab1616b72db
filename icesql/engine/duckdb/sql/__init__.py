"""The text of a query as DuckDB gets it: checked, with relations in the places of its tables.

In: the text that a user wrote, and its sqlglot tree. Out: SQL, or an error that names what DuckDB
must not run. May import: what ``engine.duckdb`` may.
"""
