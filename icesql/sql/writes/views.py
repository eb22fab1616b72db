"""CREATE VIEW and DROP VIEW of a catalog."""

from __future__ import annotations

from icesql.sql.cursor import TokenCursor
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import spliced
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.definitions import read_keys, read_name, read_properties
from icesql.sql.writes.statements import Properties, TableName


class CreateStoredView(Write):
    """CREATE VIEW: ``text`` is its SQL; ``query`` returns its columns and no rows.

    ``columns`` are new names with their comments, () without a list. ``alters``: ALTER VIEW … AS,
    of an existing view; ``lenient``: or of none, IF EXISTS.
    """

    view: TableName
    text: str
    query: Query
    columns: tuple[tuple[str, str | None], ...] = ()
    properties: Properties = ()
    if_not_exists: bool = False
    or_replace: bool = False
    alters: bool = False
    lenient: bool = False


class AlterStoredView(Write):
    """ALTER VIEW: rename it, or set and remove properties.

    ``if_exists``: properties to be removed may be missing; ``lenient``: the view may be.
    """

    view: TableName
    new: Parts | None = None
    set: Properties = ()
    unset: tuple[str, ...] = ()
    if_exists: bool = False
    lenient: bool = False


class DropStoredView(Write):
    """DROP VIEW."""

    view: TableName
    if_exists: bool = False


def read_create_view(words: TokenCursor) -> CreateStoredView | None:
    """Read the statement after CREATE; None if it creates no view."""
    start = words.index
    replaces = words.skip("OR REPLACE")
    if not words.skip("VIEW"):
        words.index = start
        return None
    unless = words.skip("IF NOT EXISTS")
    if unless and replaces:
        raise syntax_error("OR REPLACE and IF NOT EXISTS exclude each other", words.here)
    view = read_name(words, "a view")
    columns = _columns(words) if words.peek() == "(" else ()
    properties: list[tuple[str, str]] = []
    while words.token is not None and words.peek() != "AS":
        here = words.here
        if words.skip("COMMENT"):
            properties.append(("comment", words.text()))
        elif words.skip("TBLPROPERTIES"):
            properties += read_properties(words)
        elif words.peek() in ("WITH", "SECURITY"):
            raise unsupported(f"{words.peek()} {words.peek(1)} of a view", here, "leave it out")
        else:
            raise words.unexpected("AS", "COMMENT", "TBLPROPERTIES")
    words.need("AS")
    text, query = _query(words)
    return CreateStoredView(view, text, query, columns, tuple(properties), unless, replaces)


def _query(words: TokenCursor) -> tuple[str, Query]:
    """Return the text of a view, and the query of its columns."""
    if words.token is None:
        raise words.unexpected("a query")
    words.balanced()
    first = words.token.start
    text = words.written(words.index, len(words.tokens))
    end = first + len(text)
    around = [(first, first, "SELECT * FROM ("), (end, end, "\n) AS v LIMIT 0")]
    alone = words.parse.alone("a view")
    return text, alone.composed(*spliced(words.sql, first, end, around))


def read_alter_view(words: TokenCursor) -> Write:
    """Read the statement after ALTER VIEW."""
    lenient = words.skip("IF EXISTS")
    view = read_name(words, "a view")
    if words.skip("AS"):
        text, query = _query(words)
        return CreateStoredView(view, text, query, or_replace=True, alters=True, lenient=lenient)
    if words.skip("RENAME TO"):
        found = AlterStoredView(view, new=words.name("a view"), lenient=lenient)
    elif words.skip("SET TBLPROPERTIES"):
        found = AlterStoredView(view, set=read_properties(words), lenient=lenient)
    elif words.skip("UNSET TBLPROPERTIES"):
        exists = words.skip("IF EXISTS")
        found = AlterStoredView(view, unset=read_keys(words), if_exists=exists, lenient=lenient)
    elif words.peek() == "WITH":
        raise unsupported(f"WITH {words.peek(1)} of a view", words.here, "leave it out")
    else:
        raise words.unexpected("AS", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "RENAME TO")
    words.end()
    return found


def read_drop_view(words: TokenCursor) -> DropStoredView | None:
    """Read the statement after DROP; None if it drops no view."""
    if not words.skip("VIEW"):
        return None
    exists = words.skip("IF EXISTS")
    view = read_name(words, "a view")
    words.end()
    return DropStoredView(view, exists)


def _columns(words: TokenCursor) -> tuple[tuple[str, str | None], ...]:

    def column(inner: TokenCursor) -> tuple[str, str | None]:
        name = inner.identifier("a column")
        return name, inner.text() if inner.skip("COMMENT") else None

    return tuple(words.bracketed(column))
