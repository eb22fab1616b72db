"""WHERE and JOIN conditions become Iceberg predicates that the conditions imply.

In: a condition of the sqlglot tree. Out: a Predicate; the engine still evaluates the condition.
May import: query.constants, iceberg and below.
"""
