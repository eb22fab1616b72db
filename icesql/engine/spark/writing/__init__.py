"""Write data files in Spark's workers: rows of a DataFrame in, descriptions of files out.

Only data comes back to the driver: ``write.written``. May import: what ``engine.spark`` may, and
``write``.
"""
