"""FORMAT ROOM: the Iceberg format as values.

In: bytes of metadata, manifests, Puffin blobs. Out: frozen values (TableMetadata, ManifestEntries,
DataFile, Predicate). May import: context, config, errors.
"""
