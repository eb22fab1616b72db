"""The rows that a query needs: those with extreme values, their counts, one of equal rows.

In: the tree of a query with its scopes. Out: scans marked so. May import what ``pushdown`` may.
"""
