"""Rewrite deletes, with keys or without, to position deletes or vectors; data files stay.

In: a table, a branch, a condition. Out: plans with the data files that deletes apply to, tasks for
any machine, one commit. May import: engine, commit, write, read, scan, catalog, storage, iceberg
and below.
"""
