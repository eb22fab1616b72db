"""Bound queries that are kept for when their text comes again.

In: a statement and what it was bound to. Out: the same bound query over the tables as they are now,
with the values that were given this time. May import: query, sqlglot, scan and below.
"""
