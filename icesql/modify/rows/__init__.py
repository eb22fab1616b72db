"""Rows of a table that change: which go, which come, and the one commit of both.

In: the scan that found the rows, and batches of what goes and comes. Out: files and a commit.
DELETE, UPDATE and MERGE share it. May import ``commit``, ``write``, ``read`` and what is below.
"""
