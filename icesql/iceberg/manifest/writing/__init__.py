"""Write manifests and manifest lists.

In: DataFiles as entries, ManifestFiles. Out: the bytes of Avro files. May import: iceberg.
"""
