"""The Iceberg format as values, after the Iceberg table specification.

In: bytes of metadata, manifests and Puffin blobs. Out: frozen values (TableMetadata,
ManifestEntries, DataFile, Predicate). May import: context, config, errors.
"""
