"""Which rows a query needs: those with extreme values, counts of them, one of several alike.

In: the tree of a query with its scopes. Out: scans that say so. May import what ``pushdown`` may.
"""
