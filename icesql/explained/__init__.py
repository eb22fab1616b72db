"""Forms of EXPLAIN that look at every file: one file, the tree, the page.

In: the plans of a query's scans, made with ``explain`` set. Out: lines, or one page of HTML. Reads
metadata only. May import engine and everything below it.
"""
