"""EXPLAIN for callers whose text comes from others: it never runs the query."""

from __future__ import annotations

from icesql.dbapi.cursor import Cursor
from icesql.errors import ProgrammingError
from icesql.sql.statement import Explain


def explain_only(cursor: Cursor, sql: str, *, form: str = "text") -> Cursor:
    """Run EXPLAIN of the query ``sql`` in a format that EXPLAIN knows; only metadata is read.

    The text is read as the connection reads it, because comments, which nest, and parentheses may
    hide words such as ANALYZE, with which EXPLAIN would run the query. Raises ProgrammingError for
    such words, and what ``execute`` raises.
    """
    text = f"EXPLAIN (FORMAT {form}) {sql}"
    for read in cursor.connection._session.parse(text):
        if isinstance(read, Explain) and (read.analyze or read.format != form or read.file):
            raise ProgrammingError(
                "only metadata is read here: give the query alone, without words of EXPLAIN such "
                "as ANALYZE"
            )
    return cursor.execute(text)
