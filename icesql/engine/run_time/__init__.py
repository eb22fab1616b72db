"""Run-time filters: read small scans first, and use their keys to skip files of large ones.

In: a bound query with its edges, and the plans of its scans. Out: plans with the rows of small
scans, and plans of fewer files. May import query, scan, read and the local engine's Arrow streams.
"""
