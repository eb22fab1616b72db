"""CREATE and DROP MACRO, and the expansion of macro calls in the text of a statement.

In: the tokens of a statement and the known macros. Out: the text without calls, and the origin of
each part of it. May import what ``sql`` imports.
"""
