"""MERGE INTO: a query joins the table with its source and decides the action for each row.

The source is read once and kept; its keys limit which rows of the table are read. In: the
statement. Out: batches of deleted and new rows, for ``modify.rows``.
"""
