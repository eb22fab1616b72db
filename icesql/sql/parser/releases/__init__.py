"""Differences between the releases of sqlglot that pyproject.toml allows.

In: tokens and trees of any release. Out: those of the newest release. Imports only sqlglot
and ``icesql.sql.positions``.
"""
