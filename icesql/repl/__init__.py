"""The interactive shell, and how results are shown.

May import: dbapi and everything below it.
"""
