"""CREATE and DROP of session objects: temporary views and tables.

In: the tokens of a statement. Out: its value from ``statement``. May import what ``sql`` imports.
"""
