"""Keep tables healthy: what their history may forget, and the files that nobody needs any more.

In: a table of a catalog and what to keep. Out: what was removed. May import: commit, scan, catalog,
storage, iceberg, context, config, errors.
"""
