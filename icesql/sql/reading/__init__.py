"""DuckDB's own parse of a query as the tree that everything else works on.

``door`` asks DuckDB's parser for its tree as JSON, ``closed`` refuses what ``keys`` does not list,
``queries`` makes sqlglot's nodes of the rest, and ``words`` refuses a text of which the tree has
lost a word. ``statement`` puts them together for the tokens of one statement.
"""
