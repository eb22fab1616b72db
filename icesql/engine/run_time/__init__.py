"""Run-time filters: small scans are read first, and their keys limit what large ones read.

In: a bound query with its edges, and the plans of its scans. Out: plans with rows that were read,
and plans of fewer files. May import query, scan, read and the Arrow streams of the local engine.
"""
