"""Change schemas and partition specs of a table, and check their rules.

In: schemas and specs. Out: changed ones, or an error with the reason. May import: iceberg.
"""
