"""Data files written in Spark's workers: rows of a DataFrame in, descriptions of files out.

What comes back to the driver is data: ``write.written``. May import: what ``engine.spark``
may, and ``write``.
"""
