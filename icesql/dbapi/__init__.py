"""PEP 249: connections and cursors over a session.

May import: session and everything below it.
"""
