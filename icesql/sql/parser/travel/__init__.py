"""Time travel in the syntax of each system: clauses, options and calls, cut out before parsing.

In: tokens. Out: the remaining tokens, and the clauses by the marks of their tables. May import:
the same as ``sql.parser``.
"""
