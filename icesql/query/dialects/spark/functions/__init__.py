"""Spark's functions: the table, how a call finds its row, and what is built from constants."""
