"""Determines the outcome of a commit without a certain response, by loading its tables.

In: requests that were sent, and a table's current state. Out: applied, over, or open. May import:
catalog, storage, iceberg, errors; commit's attempts.
"""
