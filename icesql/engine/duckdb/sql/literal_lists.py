"""Long IN lists as DuckDB reads them fast: one bound value instead of 100,000 literals.

DuckDB takes 50 µs and 5 KB for a literal of an IN list, and next to nothing for an element of a
list that a subquery unnests. Both convert the operand and the list to one type; where the two are
known to choose the same, or types in which every value compares the same, the list is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

from msgspec import Struct

from icesql.engine.duckdb.types import duckdb_type
from icesql.iceberg import types as t
from icesql.sql.parser.literal_list import LiteralList, held
from icesql.sql.trees import exp

T = TypeVar("T")

_DIGITS: Final[dict[type[t.IcebergType], int]] = {t.IntegerType: 10, t.LongType: 19}
_MOST_DIGITS: Final = 38
_READ_FROM_TEXT: Final = (
    t.StringType, t.DateType, t.TimestampType, t.TimestamptzType, t.UUIDType, t.IntegerType,
    t.LongType,
)  # fmt: skip


def with_lists(bind: Callable[[Any, Mapping[str, Any]], T], tree: exp.Expr) -> T:
    """``bind(tree, parameters)`` with the long lists as parameters, with literals where DuckDB
    takes no subquery.
    """
    import duckdb

    with_parameters = tree.copy()
    parameters = bind_lists(with_parameters)
    try:
        return bind(with_parameters, parameters)
    except duckdb.Error:
        # The error that counts is the one that the text as written gives.
        if not parameters:
            raise
        return bind(tree, {})


def bind_lists(tree: exp.Expr) -> Mapping[str, Any]:
    """Replace the long lists of ``tree`` by named parameters, and return their values."""
    parameters: dict[str, Any] = {}
    for node, sql, name, value in list(_bound_lists(tree)):
        parameters[name] = value
        node.set("expressions", [exp.Var(this=f"SELECT unnest({sql})")])
    return parameters


class BoundLists(Struct, frozen=True):
    """The SQL of long lists, by where they or the first term of their chain begin in the text."""

    placed: Mapping[int, str] = {}
    parameters: Mapping[str, Any] = {}


def bound_lists(tree: exp.Expr) -> BoundLists:
    """The long lists of ``tree`` that can be parameters."""
    placed: dict[int, str] = {}
    parameters: dict[str, Any] = {}
    for node, sql, name, value in _bound_lists(tree):
        parameters[name] = value
        first = (*node.args.get("terms", ()), node.meta.get("list"))[0]
        if first is not None:
            placed[int(first[0])] = f"SELECT unnest({sql})"
    return BoundLists(placed, parameters)


def _bound_lists(tree: exp.Expr) -> Iterator[tuple[exp.In, str, str, Any]]:
    """The lists that one parameter can stand for: node, SQL, name and value of the parameter."""
    names: dict[LiteralList, str] = {}
    for node in tree.find_all(exp.In):
        values = held(node)
        operand = node.args.get("operand")
        if values is None or operand is None or node.find_ancestor(exp.Lambda, exp.Join):
            continue
        name = names.get(values, f"icesql_list_{len(names)}")
        bound = _bound(values, operand, f"${name}")
        if bound is not None:
            names[values] = name
            yield node, bound[0], name, bound[1]


def _bound(values: LiteralList, operand: t.IcebergType, parameter: str) -> tuple[str, Any] | None:
    """The list as SQL, and the value of its parameter; None where only literals will do."""
    match values.kind, operand:
        case "text", _ if isinstance(operand, _READ_FROM_TEXT):
            texts = f"CAST({parameter} AS VARCHAR[])"
            if not isinstance(operand, t.StringType):
                # A text beside a column of another type is a value of that type.
                texts = f"CAST({texts} AS {duckdb_type(operand)}[])"
            return texts, list(values.values)
        case "date", t.DateType() | t.TimestampType() | t.TimestamptzType():
            return _from_text(values, "DATE", parameter)
        case "integer", t.IntegerType() | t.LongType():
            return _from_text(values, "BIGINT", parameter)
        case "integer", t.FloatType() | t.DoubleType():
            return _from_text(values, duckdb_type(operand), parameter)
        case "integer" | "decimal", t.IntegerType() | t.LongType() | t.DecimalType():
            size = _decimal_size(values, operand)
            return None if size is None else _from_text(values, size, parameter)
        case _:
            return None


def _from_text(values: LiteralList, kind: str, parameter: str) -> tuple[str, str]:
    # One text is converted faster than as many Python values.
    text = ", ".join("NULL" if each is None else str(each) for each in values.values)
    return f"CAST(CAST({parameter} AS VARCHAR) AS {kind}[])", f"[{text}]"


def _decimal_size(values: LiteralList, operand: t.IcebergType) -> str | None:
    """The DECIMAL of the list; None where one that holds the operand too has over 38 digits."""
    whole, scale = 1, 0
    for each in values.values:
        if each is None:
            continue
        _, digits, exponent = Decimal(each).as_tuple()
        assert isinstance(exponent, int)
        scale = max(scale, -exponent)
        whole = max(whole, len(digits) + exponent)
    if isinstance(operand, t.DecimalType):
        own_whole, own_scale = operand.precision - operand.scale, operand.scale
    else:
        own_whole, own_scale = _DIGITS[type(operand)], 0
    if max(whole, own_whole) + max(scale, own_scale) > _MOST_DIGITS:
        return None
    return f"DECIMAL({whole + scale}, {scale})"
