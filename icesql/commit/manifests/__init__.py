"""Writes, filters and merges the manifests of a new snapshot.

In: the manifests of the branch's head and FileChanges. Out: the manifests to list. May import:
commit, scan, storage, iceberg.
"""
