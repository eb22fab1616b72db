"""Work on files as tasks that any process runs: in this process, or in Spark's tasks.

In: picklable tasks of a statement. Out: the files that each wrote (``write.written``), in any
order; files of lost tasks are removed. May import: engine, write, storage, iceberg and below.
"""
