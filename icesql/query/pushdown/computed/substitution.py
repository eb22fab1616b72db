"""Conditions with other expressions in the place of columns, and what the engine reads of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.query.pushdown.computed.reading import Reading, reading_of, set_reading

if TYPE_CHECKING:
    from icesql.query.pushdown.computed.expression import Expression


def substituted(node: exp.Expr, replacements: Mapping[int, exp.Expr]) -> exp.Expr:
    """A copy of ``node`` with some of its columns, by identity, replaced by copies of others.

    Its reading is made of the reading of ``node`` and of those of what stands in it now.
    """
    originals = [each for each in node.walk() if isinstance(each, exp.Column)]
    copy = node.copy()
    twins = [each for each in copy.walk() if isinstance(each, exp.Column)]
    assert len(originals) == len(twins)
    inner_of = {}
    for column, twin in zip(originals, twins, strict=True):
        replacement = replacements.get(id(column))
        if replacement is None:
            continue
        inner_of[_key(column)] = replacement
        inside: exp.Expr = replacement.copy()
        if not isinstance(inside, exp.Column):
            inside = exp.Paren(this=inside)
        if twin is copy:
            copy = inside
        else:
            twin.replace(inside)
    reading = reading_of(node)
    known = None
    if reading is not None and None not in inner_of:
        known = Reading(lambda: _substituted(reading, inner_of))
    set_reading(copy, known)
    return copy


def _substituted(
    reading: Reading, inner_of: Mapping[tuple[object, ...] | None, exp.Expr]
) -> Expression | None:
    from icesql.query.pushdown.computed.expression import MOST_NODES, Expression, replaced

    outer = reading.expression()
    if outer is None:
        return None
    unknown = False

    def change(each: Expression) -> Expression | None:
        nonlocal unknown
        if each.name != "input":
            return None
        replacement = inner_of.get(_key(each.value))
        if replacement is None:
            return each
        if isinstance(replacement, exp.Column):
            return Expression("input", (), replacement)
        inner = reading_of(replacement)
        found = None if inner is None else inner.expression()
        unknown = unknown or found is None
        return found

    made = replaced(outer, change)
    if unknown or sum(1 for _ in made.walk()) > MOST_NODES:
        return None
    return made


def _key(column: exp.Expr) -> tuple[object, ...] | None:
    """The place and the names of a column, which its copies share; None for one without."""
    if not isinstance(column, exp.Column):
        return None
    start = column.parts[0].meta.get("start")
    return None if start is None else (start, *(part.name for part in column.parts))
