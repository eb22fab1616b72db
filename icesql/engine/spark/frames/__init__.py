"""What users of PySpark are given: DataFrames of their own session, and what is kept for it.

May import: engine/spark, and what that may.
"""
