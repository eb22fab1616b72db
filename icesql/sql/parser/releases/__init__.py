"""Differences between the releases of sqlglot that pyproject.toml allows.

In: tokens and trees of any release. Out: those that the newest would give. Imports sqlglot and
``icesql.sql.positions`` alone.
"""
