"""Which delete files apply to which data file.

In: delete manifest entries. Out: the deletes of each data file, by sequence number, partition and
bounds. May import: scan.pruning, iceberg and below.
"""
