"""Run-time filters: which keys of one scan limit the rows of another.

In: the SELECTs of a tree, and the marks of what the engine reads alike. Out: ``KeyEdge`` values of
a bound query. May import iceberg and the other modules of ``query``.
"""
