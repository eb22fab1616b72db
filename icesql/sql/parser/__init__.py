"""sqlglot's parser with Iceberg's time travel, and what long or deep texts need around it.

In: SQL text and tokens. Out: sqlglot trees. May import: errors.
"""
