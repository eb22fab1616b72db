"""How each kind of catalog changes its tables: one atomic step, or none.

In: changes of tables. Out: whether they were applied. May import: catalog, storage, iceberg.
"""
