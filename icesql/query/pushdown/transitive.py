"""Conditions implied by equal columns: ``a.id = b.id AND a.id = 5`` implies ``b.id = 5``.

Rows of a table that fail the other table's condition can only join rows that the WHERE excludes.
That is so for a join of any kind, as long as the condition is not true for NULL: skipping them
may fill the other side with NULL, but only beside a row that the WHERE excludes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.query.names import FromItem, SelectScope, resolver, top_level
from icesql.query.pushdown.computed.expression import Expression
from icesql.scan.plan import TableScan

if TYPE_CHECKING:
    from icesql.query.pushdown.push_down import Condition

# Types whose equal values no function distinguishes; a floating zero has two signs.
_EXACT: Final = (
    t.BooleanType, t.IntegerType, t.LongType, t.DateType, t.TimeType, t.TimestampType,
    t.TimestamptzType, t.DecimalType, t.StringType,
)  # fmt: skip
_MOST: Final = 64


class Equality(Frozen):
    """Two columns of different tables that are equal in every row of the join's result.

    ``join`` is the join whose ON has the equality, None for the WHERE.
    """

    columns: tuple[exp.Column, exp.Column]
    items: tuple[FromItem, FromItem]
    names: tuple[str, str]
    join: exp.Join | None


def equalities(
    parts: Sequence[Condition],
    join: exp.Join | None,
    scope: SelectScope,
    scans: Sequence[TableScan],
) -> Iterator[Equality]:
    """The equalities in the parts of a WHERE, or of the ON of ``join``."""
    for part in parts:
        sides = part.expression.arguments
        if part.expression.name != "=" or any(each.name != "input" for each in sides):
            continue
        left, right = (each.value for each in sides)
        first, second = _known(left, scope, scans), _known(right, scope, scans)
        if first is None or second is None or first[0] is second[0] or first[2] != second[2]:
            continue
        items = (first[0], second[0])
        brought = sum(item.join is join for item in items)
        if join is not None and (join.side or join.kind in ("SEMI", "ANTI")) and brought != 1:
            continue  # its ON does not limit the combinations of two other tables
        yield Equality((left, right), items, (first[1], second[1]), join)


def implied(
    conditions: Sequence[Condition], found: Sequence[Equality], scope: SelectScope
) -> Iterator[tuple[Condition, FromItem, exp.Join | None]]:
    """Conditions implied by ``conditions``, each with its table.

    The join is that of the equality, None for an equality in the WHERE.
    """
    waiting = [(each, _only(each, scope)) for each in conditions] if found else []
    known = {each.expression for each, _ in waiting}
    made = 0
    while waiting and made < _MOST:
        condition, on = waiting.pop(0)
        if on is None:
            continue
        for each in found:
            for side in (0, 1):
                if each.items[side] is not on[0] or each.names[side] != on[1]:
                    continue
                other = each.columns[1 - side]
                inside = Expression("input", (), other)
                columns = {id(column): inside for column in condition.columns}
                note = f" (as {other.sql()} = {each.columns[side].sql()})" if condition.sql else ""
                derived = condition.over(columns, note)
                if derived.expression in known:
                    continue
                known.add(derived.expression)
                made += 1
                yield derived, each.items[1 - side], each.join
                waiting.append((derived, (each.items[1 - side], each.names[1 - side])))


def _known(
    column: exp.Column, scope: SelectScope, scans: Sequence[TableScan]
) -> tuple[FromItem, str, t.IcebergType] | None:
    """The table, the name and the type of a top-level column of a scan, else None."""
    meant = top_level(column, scope)
    if meant is None:
        return None
    item, name = meant
    if item.scan is None or not item.plain:
        return None
    field = resolver(scope, item, scans[item.scan].schema)(column)
    if field is None or not isinstance(field.type, _EXACT):
        return None
    return item, name.lower(), field.type


def _only(condition: Condition, scope: SelectScope) -> tuple[FromItem, str] | None:
    """The one column that a condition uses, None if it uses several."""
    found = [top_level(column, scope) for column in condition.columns]
    only = {(id(item), name.lower()): item for item, name in filter(None, found)}
    if len(only) != 1 or None in found:
        return None
    (((_, name), item),) = only.items()
    return item, name
