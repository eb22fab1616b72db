"""DELETE, UPDATE and MERGE in Spark's tasks: each changes the rows of some data files.

A task is given whole data files, asks the statement's query of their rows alone on DuckDB, and
writes what the same code writes on one machine. Rows of a data file meet in one task, so that a
file has one vector, and a row that matches twice is found where it is. The driver commits once.
In: a query whose rows over the table are those over its parts. Out: ``rows.new_files``.
"""
