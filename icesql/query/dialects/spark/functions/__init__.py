"""Spark's functions: the table, the search for a row, and expressions built from constants."""
