"""The user's own text in Spark's spelling, as the Spark engine runs it.

In: the text of a statement and sqlglot's tree of it, which is used for binding and pruning. Out:
the same text with tables, parameters and clocks replaced, or an error that names the unsupported
construct. May import: what ``sql`` may.
"""
