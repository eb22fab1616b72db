"""Manifest lists and manifests as columns of entries.

In: bytes of Avro files. Out: ManifestFile and ManifestEntries. May import: iceberg.
"""
