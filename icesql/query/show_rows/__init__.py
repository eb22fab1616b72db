"""What SHOW, DESCRIBE and information_schema answer, from catalogs and metadata: columns and rows.

May import scan, catalog, storage, iceberg and what ``query`` may.
"""
