"""Units, intervals and clocks in the two spellings of one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp

from icesql.query.constants.constant import NotConstant
from icesql.query.constants.current_time import same_moment
from icesql.query.constants.time_units import interval_of, interval_of_text, unit_name

Node = Mapping[str, Any]

# INTERVAL 3 DAY is to_days(trunc(3::DOUBLE)::INTEGER) to DuckDB.
_UNITS: Final = {
    f"to_{name}": unit_name(name)
    for name in (
        "years", "months", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds",
        "weeks", "quarters", "decades", "centuries",
    )
}  # fmt: skip
_WRAPPED: Final = 3


def same_unit(unit: exp.Expr | None, text: str | None) -> bool:
    """Whether DuckDB reads the text as the unit of time that the node names."""
    if text is None or not isinstance(unit, exp.Var | exp.Literal):
        return False
    return unit_name(unit.name) == unit_name(text)


def same_clock(name: str, found: Node) -> bool:
    """Whether DuckDB's node is a call of the clock that ``name`` is one of."""
    if found["type"] == "COLUMN_REF":
        names = found["column_names"]
        return len(names) == 1 and same_moment(name, str(names[0]))
    if found["type"] != "FUNCTION" or found.get("arguments"):
        return False
    return same_moment(name, str(found["function_name"]))


def same_interval(
    node: exp.Interval, found: Node, same: Callable[[exp.Expr | None, Node | None], bool]
) -> bool:
    """Whether both are the same interval, as a value where it is written as a text."""
    unit = node.args.get("unit")
    if found["type"] == "FUNCTION":
        name = _UNITS.get(str(found["function_name"]))
        if name is None or not isinstance(unit, exp.Var) or unit_name(unit.name) != name:
            return False
        inner = _unwrapped(found)
        literal = (inner or {}).get("literal") or {}
        if isinstance(node.this, exp.Literal) and literal.get("kind") in ("INTEGER", "STRING"):
            return str(literal["text"]).strip() == node.this.name.strip()
        return same(node.this, inner)
    if found["type"] != "OPERATOR_CAST" or not isinstance(node.this, exp.Literal):
        return False
    child = found["child"].get("literal") or {}
    kind = str(found["type_expr"].get("type_name", "")).upper()
    if kind != "INTERVAL" or child.get("kind") != "STRING" or found.get("try_cast"):
        return False
    return _is_value(node.this.name, unit, str(child["text"]))


def _unwrapped(found: Node) -> Node | None:
    """The amount in the casts that DuckDB's parser puts around it."""
    arguments = found.get("arguments", ())
    inner = arguments[0]["expression"] if len(arguments) == 1 else None
    for _ in range(_WRAPPED):
        if inner is None:
            return None
        if inner["type"] == "OPERATOR_CAST" and inner["query_location"] >= 1 << 63:
            inner = inner["child"]
        elif inner["type"] == "FUNCTION" and inner["function_name"] == "trunc":
            inner = inner["arguments"][0]["expression"]
    return inner


def _is_value(amount: str, unit: exp.Expr | None, text: str) -> bool:
    """Whether ``amount unit``, or ``amount`` alone, is the interval that ``text`` writes down."""
    if unit is None:
        return amount == text
    if not isinstance(unit, exp.Var):
        return False
    try:
        return interval_of(int(amount), unit.name) == interval_of_text(text)
    except (NotConstant, ValueError):
        return False


def same_variable(name: str, found: Node) -> bool:
    """Whether ``found`` is ``getvariable('name')``, in whose place the variable's value stands."""
    if found["class"] != "FUNCTION" or str(found["function_name"]).lower() != "getvariable":
        return False
    arguments = [each["expression"] for each in found["arguments"]]
    literal = arguments[0].get("literal") if len(arguments) == 1 else None
    return literal is not None and literal["kind"] == "STRING" and literal["text"] == name
