"""Where the Spark of a query comes from, and how it is left: a master, a server, a user's session.

May import: engine/spark's own modules below its engine, and what that may.
"""
