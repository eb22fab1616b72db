"""Travel beyond one snapshot: ranges of changes, and versions that a query tells.

In: references. Out: scans, and references whose versions are known. May import: what ``query`` may.
"""
