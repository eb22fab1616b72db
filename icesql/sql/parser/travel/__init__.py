"""Time travel in every system's words: clauses, options and calls, cut out before parsing.

In: tokens. Out: the tokens that are left, and the clauses by the marks of their tables. May import:
what ``sql.parser`` may.
"""
