"""MEETING ROOM: a Statement in, a BoundQuery out: names become tables at a snapshot, and filters,
columns and limits are pushed into each TableScan.

May import: read, scan, sql and what they may import.
"""
