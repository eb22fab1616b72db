"""Avro as far as manifests need it: container files, schemas, values.

In: bytes. Out: blocks, a parsed schema, Python values. May import: errors.
"""
