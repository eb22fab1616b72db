"""The user's own text run by Spark: what its plan may read, and the types of its columns.

In: a text with the views of its scans, a DataFrame of it. Out: checks that raise icesql's errors,
and the declared columns. May import: what ``engine.spark`` may.
"""
