"""Instants of wall clocks: in a repeated hour Spark takes the first instant, DuckDB the second.

Such an expression is a call of a name in ``INSTANTS`` while a tree is bound and pruned. When the
statement is written, DuckDB's expression replaces it. May import: as ``query/dialects``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from icesql.config import time_zone
from icesql.query.dialects.functions import call, duckdb
from icesql.query.dialects.translate import (
    FIRST_INSTANT,
    INSTANTS,
    MOVED,
    MOVED_BACK,
    TRUNCATED,
)

# DuckDB's expressions for these calls, equal except in repeated hours.
CALLS: Final = {
    FIRST_INSTANT: "CAST($1 AS TIMESTAMPTZ)",
    TRUNCATED: "date_trunc('{unit}', $2)",
    MOVED: "$1 + $2",
    MOVED_BACK: "$1 - $2",
}
# The first of two instants has the offset of the day before. No zone turned its clocks back before
# 1800, and subtracting a day from the least timestamp would fail.
_FIRST: Final = (
    "list_transform([CAST($1 AS TIMESTAMP)], lambda own_clock: "
    "CASE WHEN own_clock >= CAST('1800-01-01' AS TIMESTAMP) THEN "
    "list_transform([CAST(own_clock AS TIMESTAMPTZ)], lambda own_late: "
    "list_transform([make_timestamptz(epoch_us(own_clock) + (epoch_us(own_late - to_hours(25)) "
    "- epoch_us(CAST(own_late - to_hours(25) AS TIMESTAMP))))], lambda own_first: "
    "CASE WHEN own_first >= own_late THEN own_late "
    "WHEN CAST(own_first AS TIMESTAMP) = own_clock THEN own_first ELSE own_late END)[1])[1] "
    "ELSE CAST(own_clock AS TIMESTAMPTZ) END)[1]"
)
_FIRST_IN_ZONE: Final = (
    _FIRST.replace("CAST(own_clock AS TIMESTAMPTZ)", "timezone($2, own_clock)")
    .replace("CAST(own_late - to_hours(25) AS TIMESTAMP)", "timezone($2, own_late - to_hours(25))")
    .replace("CAST(own_first AS TIMESTAMP)", "timezone($2, own_first)")
)
# Truncation within a day subtracts elapsed clock time, which keeps the instant's offset.
_PART: Final = (
    "list_transform([{'clock': date_trunc($1, CAST($2 AS TIMESTAMP)), "
    "'back': make_timestamptz(epoch_us(CAST($2 AS TIMESTAMPTZ)) - epoch_us(CAST($2 AS TIMESTAMP)) "
    "+ epoch_us(date_trunc($1, CAST($2 AS TIMESTAMP))))}], lambda own_part: "
    "CASE WHEN CAST(own_part.back AS TIMESTAMP) = own_part.clock THEN own_part.back "
    f"ELSE {FIRST_INSTANT}(own_part.clock) END)[1]"
)
_DAYS: Final = f"{FIRST_INSTANT}(date_trunc($1, CAST($2 AS TIMESTAMP)))"
_PARTS_OF_A_DAY: Final = ("hour", "minute", "second", "millisecond", "microsecond")
# The result keeps the offset of the instant if the clock repeats that hour.
_MOVED: Final = (
    "list_transform([{'offset': "
    "epoch_us(CAST($1 AS TIMESTAMP)) - epoch_us(CAST($1 AS TIMESTAMPTZ)), "
    "'clock': CAST($1 AS TIMESTAMP) %s $2}], lambda own_move: "
    "CASE WHEN epoch_us(own_move.clock) - epoch_us(CAST(own_move.clock AS TIMESTAMPTZ)) "
    "= own_move.offset THEN CAST(own_move.clock AS TIMESTAMPTZ) "
    f"ELSE {FIRST_INSTANT}(own_move.clock) END)[1]"
)
_PLAIN: Final = ("UTC", "Etc/UTC")


def first_instant(clock: exp.Expr) -> exp.Expr:
    """The instant of a DATE or TIMESTAMP in the session's zone."""
    return call(FIRST_INSTANT, clock)


def plain(node: exp.Anonymous) -> exp.Expr:
    """DuckDB's expression for a call of ``INSTANTS``; its result may differ in repeated hours."""
    # sqlglot recognizes a truncation by its unit, so the unit cannot be a gap of the template.
    text = CALLS[node.name].replace("{unit}", node.expressions[0].name)
    return duckdb(text, *node.expressions, exact=False)


def resolved(tree: exp.Expr, timezone: str) -> exp.Expr:
    """Replace the calls on which DuckDB and Spark agree by casts in place; return the tree.

    They agree on all calls in a session in UTC, and on constants outside repeated hours.
    """
    return _replaced(tree, lambda node: _resolved(node, timezone))


def _resolved(node: exp.Anonymous, timezone: str) -> exp.Expr | None:
    if timezone in _PLAIN and not (node.name == FIRST_INSTANT and len(node.expressions) > 1):
        return plain(node)
    moment = _constant(node.expressions[0])
    if node.name != FIRST_INSTANT or len(node.expressions) > 1 or moment is None:
        return None
    zone = time_zone(timezone)
    try:
        first, second = (moment.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:  # An instant of the years 0 or 10000; no clock is turned back there.
        return plain(node)
    if first >= second:  # If clocks skip a time, the first is later; DuckDB takes that, too.
        return plain(node)
    text = first.replace(tzinfo=None).isoformat(" ") + "+00:00"
    return duckdb("CAST($1 AS TIMESTAMPTZ)", text)


def written(tree: exp.Expr) -> exp.Expr:
    """Replace these calls by DuckDB's expressions in place; return the tree."""
    return _replaced(tree, _expression)


def _replaced(tree: exp.Expr, replacement: Callable[[exp.Anonymous], exp.Expr | None]) -> exp.Expr:
    found = [each for each in tree.find_all(exp.Anonymous) if each.name in INSTANTS]
    for node in reversed(found):
        made = replacement(node)
        if made is None:
            continue
        if node is tree:
            return made
        node.replace(made)
    return tree


def _expression(node: exp.Anonymous) -> exp.Expr:
    arguments = node.expressions
    text = {
        FIRST_INSTANT: _FIRST if len(arguments) == 1 else _FIRST_IN_ZONE,
        TRUNCATED: _PART if arguments[0].name in _PARTS_OF_A_DAY else _DAYS,
        MOVED: _MOVED % "+",
        MOVED_BACK: _MOVED % "-",
    }[node.name]
    return written(duckdb(text, *arguments))


def _constant(clock: exp.Expr) -> datetime | None:
    """The time of a literal, also inside a cast to DATE or TIMESTAMP; None for others."""
    clock = clock.unnest()
    if isinstance(clock, exp.Cast) and clock.to.this.name in ("DATE", "TIMESTAMP"):
        clock = clock.this
    if not clock.is_string:
        return None
    try:
        found = datetime.fromisoformat(clock.name)
    except ValueError:
        return None
    return found if found.tzinfo is None else None
