"""How schemas and partition specs of a table change, and what they must be.

In: schemas and specs. Out: others, or an error that says why not. May import: iceberg.
"""
