"""Open catalogs and tables: names in, Tables (metadata and storage) out.

May import: storage, iceberg, context, config, errors.
"""
