"""Bind a statement: names become tables at a snapshot; filters, columns, limits move into scans.

In: a Statement. Out: a BoundQuery. May import: sql, scan and what they may import.
"""
