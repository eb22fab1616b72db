"""MACHINE ROOM: a BoundQuery and its ScanPlans in, rows in the declared result schema out.

May import: query and what it may import. duckdb and pyspark are named here and nowhere above.
"""
