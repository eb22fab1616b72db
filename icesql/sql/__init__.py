"""Parse SQL: text in, a Statement out, a sqlglot tree with time travel taken out of it.

Knows no Iceberg. May import: context, config, errors.
"""
