"""CREATE and DROP MACRO, and the calls of macros, put into the text of the statement that has them.

In: the tokens of a statement and the macros that are known. Out: the text without calls, and whose
words each place of it has. May import what ``sql`` imports.
"""
