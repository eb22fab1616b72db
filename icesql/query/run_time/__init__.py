"""Run-time filters: the keys of one scan that limit the rows of another.

In: the SELECTs of a tree and its scans. Out: ``KeyEdge`` values of a bound query. May import
iceberg and the other modules of ``query``.
"""
