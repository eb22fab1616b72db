"""EXPLAIN for callers whose text comes from others: it never runs the query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icesql.dbapi.cursor import Cursor
from icesql.errors import Error, ProgrammingError, place
from icesql.sql.statement import Explain


def explain_only(cursor: Cursor, sql: str, *, form: str = "text") -> Cursor:
    """Run EXPLAIN of the query ``sql`` in a format that EXPLAIN knows; only metadata is read.

    The text is read as the connection reads it, because comments, which nest, and parentheses may
    hide words such as ANALYZE, with which EXPLAIN would run the query. Raises ProgrammingError for
    such words and for what is no query, and what ``execute`` raises, with places in ``sql``.
    """
    before = f"EXPLAIN (FORMAT {form}) "
    with _placed_behind(before, sql):
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


@contextmanager
def _placed_behind(before: str, sql: str) -> Iterator[None]:
    """Positions in errors are relative to ``sql``, without the words put before it."""
    try:
        yield
    except Error as error:
        places = error.__dict__
        if places.get("offset") is not None:
            places["offset"], places["position"] = max(places["offset"] - len(before), 0), None
            place(error, sql)
        raise
