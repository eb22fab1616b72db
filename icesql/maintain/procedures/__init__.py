"""What CALL runs: each procedure's parameters and columns, and what it plans to do.

In: arguments by position or name. Out: their values by the names of the parameters, and plans that
EXPLAIN shows before anything is changed. May import: what ``maintain`` may.
"""
