"""Iceberg's REST catalog protocol: tables by HTTP.

In: properties of a catalog. Out: a Catalog. May import catalog, storage and iceberg.
Source: the Iceberg REST catalog's OpenAPI specification.
"""
