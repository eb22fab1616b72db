"""Rows of SHOW, DESCRIBE and information_schema, from catalogs and metadata.

May import scan, catalog, storage, iceberg and what ``query`` may.
"""
