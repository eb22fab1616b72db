"""The Spark engine: a BoundQuery and its ScanPlans in, Arrow batches in the declared schema out.

Spark runs the query in its own dialect (``sql/``); scans, and the parts of the query that can run
beside them (``fragments/``), run in its Python workers. May import: what ``engine`` may, and
PySpark inside functions.
"""
