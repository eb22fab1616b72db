"""Commit files and changes to tables: snapshots, conflict checks, retries, clean-up.

In: a table of a catalog, and data and delete files or updates of its metadata. Out: CommitResult.
May import: scan, catalog, storage, iceberg, context, config, errors.
"""
