"""Checks a change for conflicts with other writers' commits since it was planned.

In: a table's current state, and the state that the change relied on. Out: nothing, or
CommitConflictError. May import: commit, scan, storage, iceberg.
"""
