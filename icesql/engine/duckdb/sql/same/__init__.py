"""Where sqlglot's tree of a text and the tree of DuckDB's own parser say the same.

In: both trees of one text. Out: marks on the nodes of sqlglot's tree that stand for what DuckDB
reads there. May import: what ``engine.duckdb`` may.
"""
