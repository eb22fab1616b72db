"""Changes of a table's definition without its rows: columns, layout, properties, refs.

In: the values of ``sql.writes``. Out: ``Modified``. May import ``commit``, ``query`` and below.
"""
