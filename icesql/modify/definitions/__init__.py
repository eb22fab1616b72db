"""What a table is, changed without its rows: columns, layout, properties, branches and tags.

In: the values of ``sql.writes``. Out: ``Modified``. May import ``commit``, ``query`` and below.
"""
