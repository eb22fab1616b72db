"""Open and leave the Spark of a query: a local master, a server, or a user's session.

May import: engine/spark's own modules below its engine, and what that may.
"""
