"""Applies changes of tables in each kind of catalog, atomically or not at all.

In: changes of tables. Out: their outcomes. May import: catalog, storage, iceberg.
"""
