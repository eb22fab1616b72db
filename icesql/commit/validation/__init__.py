"""Conflict checks: other writers' commits since a change was planned, and whether it may go on.

In: a table as it is now, and what the change relied on. Out: nothing, or CommitConflictError. May
import: commit, scan, storage, iceberg.
"""
