"""MERGE INTO: a query joins the table with its source and says what becomes of each row.

The source is asked for once and kept; its keys limit what of the table is read. In: the statement.
Out: batches of rows that go and come, for ``modify.rows``.
"""
