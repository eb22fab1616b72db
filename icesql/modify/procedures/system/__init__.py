"""One file a procedure: what it takes and gives, what it plans to do, and what it says.

SHOW PROCEDURES imports them all, so that what a plan needs is imported inside it.
"""
