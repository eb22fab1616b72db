"""Queries that run before the statement is bound: versions, times, and the values of PIVOT.

A statement with ``VERSION AS OF (SELECT …)`` is not cached: the next evaluation may return another
version.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from icesql.errors import DataError, SqlSyntaxError
from icesql.quoting import literal
from icesql.sql.edited_text import Segment, Sources, joined, spliced
from icesql.sql.lexer import reading, tokenize
from icesql.sql.parse import parse_expanded
from icesql.sql.positions import unsupported
from icesql.sql.show import LISTED, UNREAD, Unread, first_unread
from icesql.sql.statement import (
    Query,
    SetSnapshotTime,
    Shown,
    TableReference,
    has_query,
    query_of,
)
from icesql.sql.time_travel import (
    AsOf,
    AtTime,
    Before,
    ByQuery,
    ChangeRange,
    SnapshotId,
    TimeTravel,
    VersionText,
)

if TYPE_CHECKING:
    from icesql.sql.statement import Query


# Evaluates a query given as text. Two rows are enough: a second row is an error.
Evaluate = Callable[[str], list[tuple[Any, ...]]]
_Any = TypeVar("_Any")


def with_answers(statement: _Any, evaluate: Evaluate) -> _Any:
    """The statement with the results of its version queries; unchanged if it has none.

    Raises SqlSyntaxError for a query that does not return one version or time, and the errors
    of ``evaluate``.
    """
    found: Any = statement
    match statement:
        case Query() if any(has_query(each) for each in statement.references):
            references = tuple(_answered(each, evaluate) for each in statement.references)
            found = replace(statement, references=references)
        case SetSnapshotTime():
            found = replace(statement, time=_with_answer(statement.time, evaluate))
        case Shown(reference=TableReference() as reference) if has_query(reference):
            found = replace(statement, reference=_answered(reference, evaluate))
    return found  # type: ignore[no-any-return]


def _answered(reference: TableReference, evaluate: Evaluate) -> TableReference:
    if reference.place is not None and has_query(reference):
        hint = "names in it would be those of this session; write the version"
        raise unsupported("a query that chooses a snapshot in a view", None, hint)
    changes: ChangeRange | None = reference.changes
    if changes is not None:
        start, end = (_with_answer(each, evaluate) for each in (changes.start, changes.end))
        changes = replace(changes, start=start, end=end)
    shown: Any = reference.shown
    if getattr(shown, "reference", None) is not None:
        shown = replace(shown, reference=_answered(shown.reference, evaluate))
    travel = _with_answer(reference.travel, evaluate)
    return replace(reference, travel=travel, changes=changes, shown=shown)


def _with_answer(travel: TimeTravel | None, evaluate: Evaluate) -> TimeTravel | None:
    wanted = query_of(travel)
    if wanted is None:
        return travel
    rows = evaluate(wanted.sql)
    if len(rows) != 1 or len(rows[0]) != 1:
        many = (
            "no row" if not rows else f"{len(rows[0])} columns" if rows[0][1:] else "several rows"
        )
        raise _wrong(wanted, f"gives {many}, and has to give one value")
    value = _value(wanted, rows[0][0])
    return Before(value) if isinstance(travel, Before) else value


def _value(wanted: ByQuery, value: Any) -> SnapshotId | VersionText | AsOf | AtTime:
    from sqlglot import exp

    from icesql.query.constants.times import micros_of

    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    is_moment = isinstance(value, date)  # a datetime is a date
    if wanted.kind != "VERSION" and is_moment:
        text = f"{value} (from a query)"
        if isinstance(value, datetime) and value.tzinfo is not None:
            return AsOf(micros_of(value), text)
        literal = exp.Literal.string(str(value))
        return AtTime(literal, text, offset=wanted.offset)
    if wanted.kind != "TIMESTAMP" and is_number and value == int(value):
        return SnapshotId(int(value))
    if wanted.kind == "TIMESTAMP" and is_number:
        seconds = wanted.numbers_are_seconds
        return AtTime(exp.Literal.number(value), str(value), seconds, wanted.offset)
    if isinstance(value, str) and value:
        if wanted.kind == "TIMESTAMP":
            return AtTime(exp.Literal.string(value), repr(value), False, wanted.offset)
        return VersionText(value)
    shown = "NULL" if value is None else f"a value of type {type(value).__name__}"
    needs = "a time" if wanted.kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
    if is_moment:
        needs += "; TIMESTAMP AS OF takes a time"
    raise _wrong(wanted, f"gives {shown}, and has to give {needs}")


def _wrong(wanted: ByQuery, problem: str) -> SqlSyntaxError:
    return SqlSyntaxError(f"the query {wanted.text} {problem}", offset=wanted.offset)


# ------------------------------------------------------------------ values of PIVOT
# They are ordered by their texts, without NULL, as when DuckDB reads them itself.


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
