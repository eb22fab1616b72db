"""What a new snapshot is told with: its id, its summary, the branch that it belongs to.

In: files and metadata. Out: plain values. May import ``iceberg``.
"""
