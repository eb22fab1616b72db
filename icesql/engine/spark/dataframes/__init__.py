"""DataFrames of a user's own SparkSession, and the values that icesql caches on that session.

May import: engine/spark, and what that may.
"""
