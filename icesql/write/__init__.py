"""Arrow record batches in, data and delete files with their metrics out: the mirror of ``read/``.

``write_task`` runs one picklable WriteTask, on this machine or in a worker of Spark, and gives
``DataFile`` values that ``commit/`` puts into a snapshot. Nothing here knows SQL or a catalog.
May import ``read.columns.arrow_schema``, ``storage`` and ``iceberg``.
"""
