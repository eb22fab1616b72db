"""ALTER TABLE and its like: columns, layout, branches and tags.

In: the tokens of a statement. Out: frozen values. May import ``sql.writes``.
"""
