"""Turn the columns of a file into the columns of a scan: by field id, type and default.

In: Arrow batches in the file's schema. Out: batches in the scan's schema, with partition constants,
metadata columns and variants. May import: what ``read`` may.
"""
