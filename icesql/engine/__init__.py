"""Run a bound query: a BoundQuery and its ScanPlans in, rows in the declared result schema out.

Holds the contract of results and of engines; ``duckdb/`` and ``spark/`` fulfil it. May import:
query, read, scan and below. duckdb and pyspark are imported here and in ``datasource`` only.
"""
