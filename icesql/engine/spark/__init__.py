"""The Spark engine: a BoundQuery and its ScanPlans in, Arrow batches in the declared schema out.

Spark runs the query in its own dialect (``sql/``); its Python workers run scans, and parts of the
query that each scan task can compute (``fragments/``). May import: what ``engine`` may, and PySpark
inside functions.
"""
