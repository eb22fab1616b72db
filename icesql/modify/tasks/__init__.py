"""DELETE, UPDATE and MERGE in Spark's tasks: each changes the rows of some data files.

A task gets whole data files, runs the statement's query over their rows alone on DuckDB, and
writes the same files as on one machine. Each data file belongs to one task, so that it gets one
vector, and the task sees a row that matches twice. The driver commits once.
In: a query that can run over parts of the table separately. Out: ``rows.new_files``.
"""
