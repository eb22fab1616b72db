"""The form of a SELECT whose rows are read one by one."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# A select list of these gives one row for each row that comes in.
_ROW_BY_ROW: Final = (
    exp.Column, exp.Identifier, exp.Star, exp.Alias, exp.Literal, exp.Boolean, exp.Null, exp.Cast,
    exp.DataType, exp.DataTypeParam, exp.Dot, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul,
)  # fmt: skip
# Clauses of a query of which only whether it has a row matters.
EXISTS_PARTS: Final = frozenset(
    {"kind", "hint", "expressions", "operation_modifiers", "from_", "where", "joins", "distinct"}
)


def has_only(node: exp.Expr, parts: frozenset[str]) -> bool:
    """Whether a SELECT or set operation has no clauses but these, by their names in its tree."""
    return all(name in parts or not value for name, value in node.args.items())


def is_row_by_row(node: exp.Expr) -> bool:
    """Whether an expression gives one value for each row, and leaves none out."""
    return all(isinstance(each, _ROW_BY_ROW) for each in node.walk())


def whole_number(node: exp.Expr | None) -> int | None:
    """The rows of ``LIMIT n`` or ``OFFSET n``; None for no clause and for any other form."""
    if not isinstance(node, exp.Limit | exp.Offset):
        return None
    if any(value for name, value in node.args.items() if name != "expression"):
        return None
    number = node.expression
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
        return None
    return int(number.name)
