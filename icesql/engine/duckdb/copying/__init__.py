"""Write results to files with DuckDB's COPY: the statement, its columns, and its target.

In: the SQL of a query whose columns have their declared types, a ``FileFormat``, a sink for bytes.
"""
