"""Parse SQL: text in, a Statement out, a sqlglot tree with time travel taken out of it.

Independent of Iceberg. May import: context, config, errors.
"""
