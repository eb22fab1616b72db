"""Change rows of a table: delete rows and add rows, in one commit.

In: the scan that found the rows, and batches of deleted and new rows. Out: files and a commit.
DELETE, UPDATE and MERGE share it. May import ``commit``, ``write``, ``read`` and what is below.
"""
