"""Run a bound query: a BoundQuery and its ScanPlans in, rows in the declared result schema out.

Defines the protocols of results and engines; ``duckdb/`` and ``spark/`` implement them. May import:
query, read, scan and below. duckdb and pyspark are imported here and in ``datasource`` only.
"""
