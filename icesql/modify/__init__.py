"""Statements that change tables: names and types resolved, rows run by an engine, one commit.

In: the values of ``sql.writes``. Out: ``Modified``, which says what was done. May import
``commit``, ``write``, ``query``, ``engine`` and what is below them; ``session`` runs it.
"""
