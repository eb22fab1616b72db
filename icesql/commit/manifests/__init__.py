"""The manifests of a new snapshot: written, filtered, merged.

In: the manifests of the branch's head and FileChanges. Out: the manifests to list. May import:
commit, scan, storage, iceberg.
"""
