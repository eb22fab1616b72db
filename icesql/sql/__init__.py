"""TEXT ROOM: SQL text in, a Statement out; sqlglot's tree with time travel taken out of it.

Knows no Iceberg. May import: context, config, errors.
"""
