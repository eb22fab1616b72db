"""Functions with another value at each call: ``now()`` is evaluated once for the whole statement.

Pruning and the engine see the same time. A statement with another such function, like
``random()``, must not be evaluated twice.
"""

from __future__ import annotations

import functools
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from icesql.config import time_zone
from icesql.query.constants.constant import Interval
from icesql.sql.acceptance import classes
from icesql.sql.edited_text import VALUE, Edit
from icesql.sql.parameters import write_literal
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.context import QueryContext


_INSTANTS: Final = frozenset(
    {"now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"}
)
_DAYS: Final = frozenset({"today", "current_date"})
_CLOCKS: Final = frozenset({"localtimestamp", "current_localtimestamp"})
_NAMES: Final = _INSTANTS | _DAYS | _CLOCKS


def is_clock(name: str) -> bool:
    """Whether a function of this name, called without arguments, returns the current time."""
    return name in _NAMES


def stop_clock(tree: exp.Expr, query: QueryContext) -> list[Edit]:
    """Replace now(), current_date and similar calls in ``tree`` by the time of the statement.

    A result column that is such a call without an alias is named by the text of the call. Returns
    the same changes as edits of the source text.
    """
    edits: list[Edit] = []
    for node in list(tree.find_all(exp.Func)):
        moment = clock_time(node, query)
        if moment is None:
            continue
        constant = time_literal(moment)
        start, stop = node.meta.get("start"), node.meta.get("stop")
        if start is not None and stop is not None:
            edits.append(Edit(start, stop, VALUE, write_literal(constant)))
        put(constant, node, node.sql(dialect="duckdb").lower())
    return edits


def put(value: exp.Expr, node: exp.Expr, name: str) -> None:
    """Replace a call by its value; a result column keeps the name of the call."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        value = exp.alias_(value, name, quoted=True)
    node.replace(value)


def clock_time(node: exp.Expr, query: QueryContext) -> datetime | date | None:
    """The value of a call such as now() in this statement, None for other expressions.

    An aware datetime is an instant, a naive one the session's wall clock, a date the session's day.
    """
    return clock_value(_name(node), query)


def clock_value(name: str, query: QueryContext) -> datetime | date | None:
    """``clock_time`` of a call of this name."""
    if name not in _NAMES:
        return None
    now = query.now if query.now.tzinfo else query.now.replace(tzinfo=UTC)
    if name in _INSTANTS:
        return now.astimezone(UTC)
    local: datetime = now.astimezone(time_zone(query.settings.timezone))
    return local.date() if name in _DAYS else local.replace(tzinfo=None)


def time_literal(value: datetime | date | Interval) -> exp.Expr:
    """SQL of an interval or of a time as ``clock_time`` returns it."""
    match value:
        case Interval(months, days, micros):
            text, kind = f"{months} months {days} days {micros} microseconds", "INTERVAL"
        case datetime():
            text = value.isoformat(" ")
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        case _:
            text, kind = value.isoformat(), "DATE"
    to = exp.DataType(this=exp.DataType.Type[kind])
    return exp.Cast(this=exp.Literal.string(text), to=to)


def _name(node: exp.Expr) -> str:
    """The name of a call without arguments, "" for all other nodes."""
    match node:
        case exp.CurrentTimestamp() if node.this is None:
            return "now"
        case exp.CurrentDate() if node.this is None:
            return "today"
        case exp.Localtimestamp() if node.this is None:
            return "localtimestamp"
        case exp.Anonymous() if not node.expressions:
            return node.name.lower()
        case _:
            return ""


# ------------------------------------------------------------------ other volatile functions


def volatile_parts(tree: exp.Expr) -> Iterator[str]:
    """The names of calls such as ``random()``, and TABLESAMPLE, in a tree with stopped clock."""
    node: Any
    for node in tree.find_all(exp.Func, exp.TableSample):
        if isinstance(node, exp.TableSample):
            yield "TABLESAMPLE"
            continue
        names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
        yield from (f"{each.lower()}()" for each in names if each.lower() in _names())


@functools.cache
def _names() -> frozenset[str]:
    from icesql.sql.spark_sql import classes as spark_classes

    own = {name for (_, name), kind in classes().items() if kind == "volatile"}
    return frozenset(own | {name for name, kind in spark_classes().items() if kind == "volatile"})
