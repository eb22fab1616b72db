"""The SQLAlchemy dialect ``icesql://``. In: SQLAlchemy's statements; out: DB-API calls on dbapi.

``compiler.with_version`` and ``as_of`` read a table at a version or a time. May import dbapi and
what that imports.
"""
