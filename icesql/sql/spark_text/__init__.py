"""The user's own text where it is in Spark's spelling, as the Spark engine runs it.

In: the text of a statement and the tree that sqlglot made of it, which serves to bind and to prune.
Out: the same text with tables, parameters and clocks at their places, or an error that names what
may not run. May import: what ``sql`` may.
"""
