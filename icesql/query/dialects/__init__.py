"""Translation of a foreign dialect's tree to DuckDB's meaning, once types are known.

In: the tree of a statement in that dialect and the schemas of its tables. Out: the same tree with
the functions and operators of the dialect's tested table translated; all others are refused by
name at their offset. May import: query, sql, iceberg, errors.
"""
