"""Translation of a foreign dialect's tree to DuckDB's meaning, once types are known.

In: the tree of a statement in that dialect and the schemas of its tables. Out: the same tree, whose
functions and operators are those of the dialect's tested table; everything else is refused by name
at its place. May import: query, sql, iceberg, errors.
"""
