"""The description of a new snapshot: its id, its summary and its branch.

In: files and metadata. Out: plain values. May import ``iceberg``.
"""
