"""EXPLAIN for callers with untrusted SQL: it never runs the query."""

from __future__ import annotations

from icesql.dbapi.cursor import Cursor
from icesql.errors import Error, ProgrammingError, place
from icesql.sql.statement import Explain


def explain_only(cursor: Cursor, sql: str, *, form: str = "text") -> Cursor:
    """Run EXPLAIN of the query ``sql`` in a format of EXPLAIN; only metadata is read.

    The connection's own parser checks the text, because nested comments and parentheses may hide
    words such as ANALYZE, with which EXPLAIN would run the query. Raises ProgrammingError for such
    words and for statements that are not queries, and as ``execute``, with positions in ``sql``.
    """
    before = f"EXPLAIN (FORMAT {form}) "
    try:
        for read in cursor.connection._session.parse(before + sql):
            if not isinstance(read, Explain):
                raise ProgrammingError(
                    "only a query is explained here: send one (SELECT, WITH, FROM, VALUES), not "
                    f"{' '.join(sql.split())[:40]!r}"
                )
            if read.analyze or read.format != form or read.file:
                raise ProgrammingError(
                    "only metadata is read here: give the query alone, without words of EXPLAIN "
                    "such as ANALYZE"
                )
        return cursor.execute(before + sql)
    except Error as error:
        places = error.__dict__  # without the words in front
        if places.get("offset") is not None:
            places["offset"], places["position"] = max(places["offset"] - len(before), 0), None
            place(error, sql)
        raise
