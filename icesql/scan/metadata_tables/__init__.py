"""Metadata as tables: the contents of a table's metadata and manifests, as rows with a schema.

In: a TableScan that names a metadata table. Out: rows in the internal form of ``iceberg.types``.
May import scan, catalog, storage and iceberg.
"""
