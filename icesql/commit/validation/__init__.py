"""What other writers did since a change was planned, and whether the change may still be made.

In: a table as it is now, and what the change relied on. Out: nothing, or CommitConflictError. May
import: commit, scan, storage, iceberg.
"""
