"""The Spark engine: in comes a bound query with its plans, out go Arrow batches as declared.

Spark runs the tree in its own dialect; scans, and the fragments of the tree that can run beside
them, run in its Python workers. May import what ``engine`` may, and PySpark inside functions.
"""
