"""Read the values that become columns of ``PIVOT t ON c USING …``, before the query itself.

They are ordered by their texts, without NULL, as when DuckDB reads them itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.errors import DataError
from icesql.quoting import literal
from icesql.sql.lexer import reading, tokenize
from icesql.sql.parse import parse_expanded
from icesql.sql.positions import unsupported
from icesql.sql.show_statements.in_from import LISTED, UNREAD, Unread, first_unread
from icesql.sql.sources import Segment, Sources, joined, spliced

if TYPE_CHECKING:
    from icesql.sql.statement import Query

_MOST_VALUES: Final = 10_000
_NO_VALUE: Final = "icesql: no value"
_WITHOUT: Final = f"SELECT COLUMNS(lambda name: NOT contains(name, '{_NO_VALUE}')) FROM ("


def with_pivot_values(
    query: Query, evaluate: Callable[[Query, int], list[tuple[Any, ...]]], *, files: bool
) -> Query:
    """The query with the values of each PIVOT, as read by ``evaluate``, inserted into its text.

    ``evaluate`` returns the first rows of a query, at most the given number.

    Raises DataError if there are too many values, UnsupportedSqlError for parameters that
    cannot be counted, and the errors of ``evaluate`` and of parsing the new text.
    """
    if any(each.shown is not None for each in query.references):
        raise unsupported("PIVOT without a list of values beside SHOW in FROM", None, LISTED)
    # A value may contain the text of the placeholder.
    for _ in range(query.text.count(UNREAD)):
        unread = first_unread(tokenize(query.text, reading(None)))
        if unread is None:
            break
        values = [str(row[0]) for row in evaluate(_values(query, unread, files), _MOST_VALUES + 1)]
        item = query.text[slice(*unread.item)]
        if len(values) > _MOST_VALUES:
            raise DataError(f"PIVOT finds over {_MOST_VALUES:,} values of {item}; {LISTED}")
        listed = ", ".join(map(literal, values or [_NO_VALUE]))
        edits = [(unread.start, unread.end, f"({listed})")]
        if not values:  # only the group columns
            start, end = unread.pivot
            edits = [(start, start, _WITHOUT), *edits, (end, end, ")")]
        text, sources = spliced(query.text, 0, len(query.text), edits)
        query = _read(query, text, sources, query.given, files)
    return query


def _values(query: Query, unread: Unread, files: bool) -> Query:
    """The query for the values of one item, with offsets of the statement."""
    text = query.text
    parts: list[str | tuple[int, int]] = []
    for number, place in enumerate(unread.queries):
        parts += [", " if number else f"WITH {'RECURSIVE ' if unread.is_recursive else ''}", place]
    parts += ["\nSELECT DISTINCT CAST((", unread.item, ") AS VARCHAR) FROM ", unread.source]
    parts += [" WHERE (", unread.item, ") IS NOT NULL ORDER BY 1"]
    made, sources = joined(
        Segment(each, -1, unread.start)
        if isinstance(each, str)
        else Segment(text[slice(*each)], -1, each[0], each[1] - each[0])
        for each in parts
    )
    before = _unnamed(text[: unread.source[0]])
    if before > sum(_unnamed(text[slice(*each)]) for each in unread.queries):
        raise unsupported("a parameter before a PIVOT without a list of values", None, LISTED)
    read = _read(query, made, sources, query.given, files)
    return replace(read, about="")  # the values, not a SUMMARIZE or DESCRIBE of them


def _unnamed(sql: str) -> int:
    return sum(each.text == "?" for each in tokenize(sql, reading(None)))


def _read(query: Query, text: str, sources: Sources, given: tuple[Any, int], files: bool) -> Query:
    """Parse a text derived from a query as a query of the same statement."""
    pieces = [replace(each, start=each.start + query.start) for each in sources.pieces]
    sources = replace(sources, pieces=tuple(pieces), under=query.sources)
    with sources.placing():
        made = parse_expanded(text, dialect=None, given=given, shown={}, files=files)
    return replace(
        made,
        about=query.about,
        sources=sources,
        notes=query.notes,
        for_explain=query.for_explain,
    )
