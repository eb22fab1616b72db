"""The values of long IN lists as constants, and the type of what is looked for in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.iceberg import types as t
from icesql.query.constants.constant import Constant, Kind
from icesql.query.names import SelectScope, meaning_of
from icesql.query.pushdown.column_access import column_of, resolver
from icesql.sql.parser.literal_list import LiteralList, held

if TYPE_CHECKING:
    from icesql.scan.table_scan import TableScan

_EPOCH: Final = date(1970, 1, 1).toordinal()
_RANGES: Final[dict[type[t.IcebergType], int]] = {t.IntegerType: 1 << 31, t.LongType: 1 << 63}


def stored_values(values: LiteralList, column_type: t.IcebergType) -> frozenset[Any] | None:
    """The values in the internal form of a column's type, without NULL and those out of its range.

    None where the two need more than that to be compared.
    """
    limit = _RANGES.get(type(column_type))
    if values.kind == "integer" and limit is not None:
        return frozenset(
            each for each in values.values if each is not None and -limit <= each < limit
        )
    if values.kind == "decimal" and limit is not None:
        whole = (int(each) for each in values.values if each is not None and each == int(each))
        return frozenset(each for each in whole if -limit <= each < limit)
    if values.kind == "text" and isinstance(column_type, t.StringType):
        return frozenset(values.values) - {None}
    if values.kind == "date" and isinstance(column_type, t.DateType):
        return frozenset(_days(values))
    return None


def _days(values: LiteralList) -> Iterator[int]:
    for each in values.values:
        if each is not None:
            yield date.fromisoformat(each).toordinal() - _EPOCH


def constants_of(values: LiteralList) -> Iterator[Constant]:
    """Each distinct value as a typed constant, NULL included."""
    kinds = {"integer": Kind.INTEGER, "text": Kind.TEXT}
    for each in dict.fromkeys(values.values):
        if each is None:
            yield Constant(Kind.NULL, None)
        elif values.kind == "date":
            yield Constant(Kind.DATE, date.fromisoformat(each).toordinal() - _EPOCH)
        elif values.kind == "decimal":
            yield Constant(Kind.INTEGER if isinstance(each, int) else Kind.DECIMAL, each)
        else:
            yield Constant(kinds[values.kind], each)


def type_lists(scopes: Sequence[SelectScope], scans: Sequence[TableScan]) -> bool:
    """Note at each long list the type of the column that is looked for in it, where one is.

    False when the scopes have no such list.
    """
    found = False
    for scope in scopes:
        for node in [each for each in scope.own_nodes() if isinstance(each, exp.In)]:
            if held(node) is not None:
                node.set("operand", _type_of(node.this, scope, scans))
                found = True
    return found


def _type_of(
    node: exp.Expr, scope: SelectScope, scans: Sequence[TableScan]
) -> t.IcebergType | None:
    def resolve(column: exp.Column) -> t.NestedField | None:
        items = meaning_of(column, scope).items
        index = items[0].scan if len(items) == 1 else None
        return None if index is None else resolver(scope, items[0], scans[index].schema)(column)

    found = column_of(node, resolve)
    return None if found is None else found.type
