"""Results as files, by DuckDB's COPY: what a result's columns and a format become, and where to.

In: the SQL of a query whose columns have their declared types, a ``FileFormat``, a sink for bytes.
"""
