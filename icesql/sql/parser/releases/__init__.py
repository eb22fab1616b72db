"""What the releases of sqlglot that pyproject.toml allows read in different ways.

In: tokens and trees of any release. Out: those that the newest would give. Imports sqlglot and
``icesql.sql.positions`` alone.
"""
