"""DuckDB's own parse of a query as the tree that everything else works on.

``door`` gets the tree from DuckDB's parser as JSON, ``closed`` refuses nodes that its table does
not list, and ``queries`` converts the others to sqlglot's nodes. ``statement`` applies them to the
tokens of a statement.
"""
