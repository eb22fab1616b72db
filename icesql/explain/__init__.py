"""EXPLAIN: what a query reads and why, as values, lines of text, a tree and one page of HTML.

In: a bound query and the plans of its scans, made with ``explain`` set. Out: rows of text. Reads
metadata only, but for EXPLAIN ANALYZE. May import engine and everything below it.
"""
