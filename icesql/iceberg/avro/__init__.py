"""Avro: container files of manifests and data; schemas and values as far as manifests need them.

In: bytes or streams. Out: blocks, a parsed schema, Python values. May import: errors.
"""
