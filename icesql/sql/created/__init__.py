"""CREATE and DROP of what a session has: temporary views and tables.

In: the tokens of a statement. Out: its value of ``statement``. May import what ``sql`` imports.
"""
