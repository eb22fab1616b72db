"""Rewrite data files: small and deleted-from ones become few of the target size.

In: a table, what to rewrite. Out: file groups as values, tasks that any machine runs, one commit or
several. May import: engine, commit, write, read, scan, catalog, storage, iceberg and below.
"""
