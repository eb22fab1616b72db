"""Spark runs the user's own text: check what its plan reads, and declare its columns.

In: a text with the views of its scans, a DataFrame of it. Out: checks that raise icesql's errors,
and the declared columns. May import: what ``engine.spark`` may.
"""
