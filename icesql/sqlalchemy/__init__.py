"""The SQLAlchemy dialect ``icesql://``. In: SQLAlchemy's statements; out: DB-API calls on dbapi.

``time_travel.with_version`` and ``as_of`` read a table as it was. May import dbapi and what that
imports.
"""
