"""Table metadata JSON: schemas, partition specs, sort orders, snapshots, refs, name mapping.

In: bytes of a metadata file. Out: TableMetadata. May import: iceberg.
"""
