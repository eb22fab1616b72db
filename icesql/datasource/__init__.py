"""PySpark's data source: ``format("icesql")`` for batch, incremental and streaming reads.

In: options and filters of a Spark reader. Out: Arrow batches in Spark's workers. May import: engine
and everything below it, and pyspark inside functions.
"""
