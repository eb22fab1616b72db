"""Translate WHERE and JOIN conditions to Iceberg predicates that they imply.

In: a condition of the sqlglot tree. Out: a Predicate; the engine still evaluates the condition.
May import: query.constants, iceberg and below.
"""
