"""CALL: each procedure is a file of ``system``, found by its name.

In: arguments by position or name. Out: their values, and plans that EXPLAIN shows before anything
is changed. May import: what ``modify`` may.
"""
