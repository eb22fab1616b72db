"""Open Parquet, ORC and Avro files and decode the wanted columns of a row range.

In: a file and its wanted fields. Out: Arrow batches in the file's own schema. May import: what
``read`` may.
"""
