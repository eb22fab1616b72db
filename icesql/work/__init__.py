"""One machine for work on files: tasks that any process runs, here or in Spark's tasks.

In: tasks of a statement, picklable. Out: what each wrote (``write.written``), in no order, and the
files of those that were lost removed. May import: engine, write, storage, iceberg and below.
"""
