"""sqlglot's parser with Iceberg's time travel, and support for long or deeply nested texts.

In: SQL text and tokens. Out: sqlglot trees. May import: errors.
"""
