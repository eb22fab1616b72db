"""Puffin files and the deletion vectors in them.

In: bytes of a Puffin file or blob. Out: blob descriptions and positions. May import: iceberg.
"""
