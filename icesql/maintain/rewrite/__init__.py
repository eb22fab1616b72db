"""Rewrite data files: small files and files with many deletes become few of the target size.

In: a table, and a request. Out: plans with file groups, tasks for any machine, one commit or
several. May import: engine, commit, write, read, scan, catalog, storage, iceberg and below.
"""
