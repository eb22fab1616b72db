"""Read bytes by path: local files and object stores; moved tables are re-rooted here.

In: paths as metadata spells them. Out: bytes and open files. May import: iceberg, context, config,
errors.
"""
