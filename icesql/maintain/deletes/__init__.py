"""Deletes written anew, by keys or not: they become position deletes or vectors; data files stay.

In: a table, a branch, a condition. Out: the files that deletes apply to as values, tasks that any
machine runs, one commit. May import: engine, commit, write, read, scan, catalog, storage, iceberg
and below.
"""
