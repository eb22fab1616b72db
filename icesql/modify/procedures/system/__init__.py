"""One file for each procedure: its parameters, result columns and plan.

SHOW PROCEDURES imports all of them, so each imports what its plan needs inside the function.
"""
