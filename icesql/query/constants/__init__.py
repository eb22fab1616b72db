"""Constant SQL expressions as values: literals, casts, intervals, the clock.

In: a sqlglot expression without columns. Out: a Constant, or a range of instants. May import:
sqlglot, iceberg and below.
"""
