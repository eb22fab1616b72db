"""ALTER TABLE and its like: columns, layout, branches and tags.

In: the words of a statement. Out: frozen values. May import ``sql.writes``.
"""
