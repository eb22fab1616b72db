"""Keep tables healthy: expire old snapshots, and remove files that no snapshot needs any more.

In: a table of a catalog, and which snapshots and files to keep. Out: what was removed. May import:
commit, scan, catalog, storage, iceberg, context, config, errors.
"""
