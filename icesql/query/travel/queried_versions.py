"""Versions and times from a query: ``VERSION AS OF (SELECT …)`` is evaluated before binding.

Statements with such a query are not cached: the next evaluation may return another version.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

from msgspec.structs import replace

from icesql.errors import SqlSyntaxError
from icesql.sql.change_range import ChangeRange
from icesql.sql.positions import unsupported
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
    SnapshotId,
    TimeTravel,
    VersionText,
)

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

    from icesql.query.constants.time_units import micros_of

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
