"""Output for notebooks. In: a cursor, the progress of a statement; out: HTML.

May import what dbapi may; IPython only where it runs already.
"""
