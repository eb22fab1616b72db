"""Invert exact arithmetic on a whole-number or decimal column."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term
from icesql.query.constants.constant import Constant, Kind, negative, total
from icesql.query.constants.folding import fold
from icesql.query.pushdown.comparison import FLIPPED

if TYPE_CHECKING:
    from icesql.context import QueryContext

FieldOf = Callable[[exp.Expr | None], t.NestedField | None]
Compare = Callable[[Operation, exp.Expr, Constant], Predicate]

_INTEGERS: Final = (t.IntegerType, t.LongType)
_EXACT: Final = (t.IntegerType, t.LongType, t.DecimalType)


def unwrap_number(
    operation: Operation,
    node: exp.Expr,
    constant: Constant,
    field_of: FieldOf,
    compare: Compare,
    query: QueryContext,
) -> Predicate | None:
    """What ``node operation constant`` implies for the column in a sum, product or negation."""
    inversion = _Numbers(operation, constant, field_of, compare, query)
    match node:
        case exp.Neg():
            return inversion.negation(node)
        case exp.Add() | exp.Sub():
            return inversion.sum(node)
        case exp.Mul():
            return inversion.product(node)
        case _:
            return None


class _Numbers(Struct, frozen=True):
    operation: Operation
    constant: Constant
    field_of: FieldOf
    compare: Compare
    query: QueryContext

    def _is_exact_number(self, node: exp.Expr) -> bool:
        """Whether ``node`` is an int or decimal column, or exact arithmetic on one."""
        match node:
            case exp.Paren() | exp.Neg():
                return self._is_exact_number(node.this)
            case exp.Add() | exp.Sub() | exp.Mul():
                return all(
                    self._is_exact_number(side) or self._exact_constant(side) is not None
                    for side in (node.this, node.expression)
                )
            case _:
                found = self.field_of(node)
                return found is not None and isinstance(found.type, _EXACT)

    def _exact_constant(self, node: exp.Expr) -> Constant | None:
        constant = fold(node, self.query)
        if constant is not None and constant.kind in (Kind.INTEGER, Kind.DECIMAL):
            return constant
        return None

    def negation(self, node: exp.Neg) -> Predicate | None:
        value = self.constant
        if value.kind not in (Kind.INTEGER, Kind.DECIMAL) or not self._is_exact_number(node.this):
            return None
        negated = Constant(value.kind, negative(value.value))
        return self.compare(FLIPPED[self.operation], node.this, negated)

    def sum(self, node: exp.Binary) -> Predicate | None:
        left, right = node.this, node.expression
        minus = isinstance(node, exp.Sub)
        known, inner, on_left = fold(right, self.query), left, False
        if known is None:
            known, inner, on_left = fold(left, self.query), right, True
        if known is None:
            return None
        if known.kind is Kind.NULL:
            return ALWAYS_FALSE
        if not self._is_exact_number(inner) or known.kind not in (Kind.INTEGER, Kind.DECIMAL):
            return None
        if self.constant.kind not in (Kind.INTEGER, Kind.DECIMAL):
            return None
        operation, target = self.operation, self.constant
        if minus and on_left:  # c - x op k: x flipped(op) c - k
            operation, difference = FLIPPED[operation], _minus(known, target)
        elif minus:
            difference = _plus(target, known)
        else:
            difference = _minus(target, known)
        return self.compare(operation, inner, difference)

    def product(self, node: exp.Mul) -> Predicate | None:
        """A whole-number column times a whole number."""
        factor, inner = fold(node.expression, self.query), node.this
        if factor is None:
            factor, inner = fold(node.this, self.query), node.expression
        found = self.field_of(inner)
        if found is None or not isinstance(found.type, _INTEGERS):
            return None
        target = self.constant
        if factor is None or factor.kind is not Kind.INTEGER or target.kind is not Kind.INTEGER:
            return None
        if not factor.value:
            return None
        quotient = Fraction(target.value, factor.value)
        operation = FLIPPED[self.operation] if factor.value < 0 else self.operation
        if quotient.denominator == 1:
            return self.compare(operation, inner, Constant(Kind.INTEGER, quotient.numerator))
        floor = Constant(Kind.INTEGER, quotient.numerator // quotient.denominator)
        match operation:
            case Operation.EQ:
                return ALWAYS_FALSE
            case Operation.NOT_EQ:
                return Leaf(Operation.NOT_NULL, Term(found.field_id, found.name))
            case Operation.LT | Operation.LT_EQ:
                return self.compare(Operation.LT_EQ, inner, floor)
            case _:
                return self.compare(Operation.GT, inner, floor)


def _plus(left: Constant, right: Constant) -> Constant:
    kind = Kind.INTEGER if left.kind is right.kind is Kind.INTEGER else Kind.DECIMAL
    return Constant(kind, total(left.value, right.value))


def _minus(left: Constant, right: Constant) -> Constant:
    return _plus(left, Constant(right.kind, negative(right.value)))
