"""Build the SQL text that DuckDB runs: check the query and replace its tables by relations.

In: the user's text and its sqlglot tree. Out: SQL, or an error that names a construct that DuckDB
must not run. May import: what ``engine.duckdb`` may.
"""
