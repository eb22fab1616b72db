"""Predicates over columns by field id: literals, evaluation, projection through partition specs."""
