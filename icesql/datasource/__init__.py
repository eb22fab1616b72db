"""PySpark's data source: ``format("icesql")`` for reads and writes, in batches and as streams.

In: options and filters of a Spark reader, or rows. Out: Arrow batches in Spark's workers, or
snapshots. May import: modify and everything below it, and pyspark inside functions.
"""
