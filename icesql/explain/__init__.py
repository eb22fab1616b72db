"""EXPLAIN: describes the reads of a query as values, lines of text, a tree or a page of HTML.

In: a bound query and the plans of its scans, made with ``explain`` set. Out: rows of text. Reads
metadata only, except for EXPLAIN ANALYZE. May import engine and everything below it.
"""
