"""Turn a SQL condition into an Iceberg predicate that is implied by it.

Negation is pushed to the leaves under three-valued logic as the tree is walked: NOT of a comparison
is the opposite comparison, which is NULL for the same rows. What has no Iceberg form becomes true,
under AND and OR alike, so the predicate only ever lets more rows pass than the condition.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.query.constants.casts import unify
from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.folding import fold
from icesql.query.pushdown.column_access import Resolve, column_of, tuple_parts, why_not
from icesql.query.pushdown.comparison import (
    FLIPPED,
    NEGATED,
    all_of,
    any_of,
    compare_constant,
    is_pushable_type,
)
from icesql.query.pushdown.like import like, starts_with
from icesql.query.pushdown.membership import membership
from icesql.query.short_sql import short_sql

if TYPE_CHECKING:
    from icesql.context import QueryContext

COMPARISONS: Final[dict[type[exp.Expr], Operation]] = {
    exp.EQ: Operation.EQ,
    exp.NEQ: Operation.NOT_EQ,
    exp.LT: Operation.LT,
    exp.LTE: Operation.LT_EQ,
    exp.GT: Operation.GT,
    exp.GTE: Operation.GT_EQ,
}
# A condition of 10,000 terms has as many reasons, and nobody reads them.
_MOST_REASONS: Final = 20
_HOLDS: Final = {
    Operation.EQ: operator.eq,
    Operation.NOT_EQ: operator.ne,
    Operation.LT: operator.lt,
    Operation.LT_EQ: operator.le,
    Operation.GT: operator.gt,
    Operation.GT_EQ: operator.ge,
}


class Translation(Struct, frozen=True):
    """A predicate and, in words, what of the condition it leaves to the engine."""

    predicate: Predicate
    reasons: tuple[str, ...]


def translate(
    condition: exp.Expr,
    resolve: Resolve,
    query: QueryContext,
    *,
    for_explain: bool = True,
) -> Translation:
    """A predicate that holds for every row for which ``condition`` is true.

    With it comes why parts of the condition could not be used.
    ``resolve`` gives the field, at any depth, that a column of the condition means in the scan,
    None for columns of other tables. Terms are named by the field alone. NULL, NaN, zeros and
    literals that the column's type cannot hold: see ``iceberg.expressions``. ``for_explain``:
    whether the reasons name their conditions, whose text takes time to write.
    """
    translator = Translator(resolve, query, for_explain)
    predicate = translator.implied(condition, negated=False)
    return Translation(predicate, tuple(dict.fromkeys(translator.reasons)))


class Translator(Struct):
    """Walks one condition; ``reasons`` gathers what of it is left to the engine."""

    resolve: Resolve
    query: QueryContext
    for_explain: bool = True
    reasons: list[str] = field(default_factory=list)

    def implied(self, node: exp.Expr, *, negated: bool) -> Predicate:
        """What follows from ``node`` being true (``negated``: false) for a row."""
        match node:
            case exp.Paren():
                return self.implied(node.this, negated=negated)
            case exp.Not():
                return self.implied(node.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = (self.implied(part, negated=negated) for part in node.flatten())
                return all_of(parts) if isinstance(node, exp.And) != negated else any_of(parts)
            case _:
                return self._leaf(node, negated=negated)

    def _leaf(self, node: exp.Expr, *, negated: bool) -> Predicate:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                operation = COMPARISONS[type(node)]
                return self.comparison(
                    NEGATED[operation] if negated else operation, node.this, node.expression, node
                )
            case exp.NullSafeEQ():
                return self._distinct(node, distinct=negated)
            case exp.NullSafeNEQ():
                return self._distinct(node, distinct=not negated)
            case exp.Between():
                return self._between(node, negated=negated != bool(node.args.get("negate")))
            case exp.In():
                return membership(self, node, negated=negated != bool(node.args.get("negate")))
            case exp.Is():
                return self._is(node, negated=negated != bool(node.args.get("negate")))
            case exp.Escape():
                return self._escape(node, negated=negated)
            case exp.Like():
                return self._like(node, None, negated=negated != bool(node.args.get("negate")))
            case exp.StartsWith():
                return self._starts_with(node.this, node.expression, node, negated=negated)
            case exp.Anonymous() if node.name.lower() == "prefix" and len(node.expressions) == 2:
                operand, prefix = node.expressions
                return self._starts_with(operand, prefix, node, negated=negated)
            case exp.IsNan():
                return self._is_nan(node, negated=negated)
            case _:
                return self._boolean(node, negated=negated)

    # -------------------------------------------------------------- columns

    def column(self, node: exp.Expr | None) -> t.NestedField | None:
        """The field that ``node`` is, through struct access, None for anything else."""
        return column_of(node, self.resolve)

    def compare(self, operation: Operation, node: exp.Expr, constant: Constant) -> Predicate:
        """``node operation constant``, inverting functions of a column where that is sound."""
        if constant.kind is Kind.NULL:
            return ALWAYS_FALSE
        found = self.column(node)
        if found is not None:
            if not is_pushable_type(found.type) or isinstance(found.type, t.VariantType):
                return self.left_to_engine(node, f"{found.type} columns have no bounds")
            predicate = compare_constant(operation, _term(found), found.type, constant, self.query)
            if predicate is ALWAYS_TRUE:
                kind = constant.kind.name.lower()
                return self.left_to_engine(
                    node, f"a {found.type} column is not compared with {kind}"
                )
            return predicate
        from icesql.query.pushdown.unwrap import unwrap

        inverted = unwrap(self, operation, node, constant)
        return inverted if inverted is not None else self.opaque(node)

    # -------------------------------------------------------------- leaves

    def comparison(
        self, operation: Operation, left: exp.Expr, right: exp.Expr, node: exp.Expr
    ) -> Predicate:
        """``left operation right``, part by part for tuples; ``node`` is the whole condition."""
        lefts, rights = tuple_parts(left), tuple_parts(right)
        if lefts and rights and len(lefts) == len(rights) and operation is Operation.EQ:
            return all_of(
                self.equal_parts(each, other, node)
                for each, other in zip(lefts, rights, strict=True)
            )
        return self._meet(
            operation, (left, fold(left, self.query)), (right, fold(right, self.query)), node
        )

    def equal_parts(self, left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Predicate:
        """What follows for parts of two equal rows, in which a NULL equals a NULL."""
        constant, other = fold(right, self.query), fold(left, self.query)
        if constant is not None and constant.kind is Kind.NULL:
            return ALWAYS_TRUE if other is not None else self._null(left, node, negated=False)
        if other is not None and other.kind is Kind.NULL:
            return ALWAYS_TRUE if constant is not None else self._null(right, node, negated=False)
        return self._meet(Operation.EQ, (left, other), (right, constant), node)

    def _meet(
        self,
        operation: Operation,
        one: tuple[exp.Expr, Constant | None],
        two: tuple[exp.Expr, Constant | None],
        node: exp.Expr,
    ) -> Predicate:
        """Compare two sides, each with its value when it is a constant."""
        (left, other), (right, constant) = one, two
        if constant is not None and other is not None:
            return self._constants(operation, other, constant)
        if constant is not None:
            return self.compare(operation, left, constant)
        if other is not None:
            return self.compare(FLIPPED[operation], right, other)
        if left.find(exp.Column) and right.find(exp.Column):
            return self.left_to_engine(node, "it compares columns with each other")
        return self.opaque(left if not left.find(exp.Column) else right)

    def _constants(self, operation: Operation, left: Constant, right: Constant) -> Predicate:
        if Kind.NULL in (left.kind, right.kind):
            return ALWAYS_FALSE
        kinds = {left.kind, right.kind}
        known = kinds <= {Kind.INTEGER, Kind.DECIMAL} or (
            len(kinds) == 1
            and left.kind in (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
        )
        if not (known and left.is_exact and right.is_exact):
            return ALWAYS_TRUE
        return ALWAYS_TRUE if _HOLDS[operation](left.value, right.value) else ALWAYS_FALSE

    def _distinct(self, node: exp.Binary, *, distinct: bool) -> Predicate:
        """IS DISTINCT FROM (``distinct``) or IS NOT DISTINCT FROM."""
        left, right = node.this, node.expression
        constant = fold(right, self.query)
        if constant is None:
            left, right = right, left
            constant = fold(right, self.query)
        if constant is None:
            return self.left_to_engine(node, "it compares columns with each other")
        if constant.kind is Kind.NULL:
            return self._null(left, node, negated=distinct)
        if not distinct:
            return self.compare(Operation.EQ, left, constant)
        found = self.column(left)
        if found is None or not is_pushable_type(found.type):
            return self.opaque(node)
        differs = self.compare(Operation.NOT_EQ, left, constant)
        return any_of([Leaf(Operation.IS_NULL, _term(found)), differs])

    def _between(self, node: exp.Between, *, negated: bool) -> Predicate:
        sides = (node.this, node.args["low"], node.args["high"])
        if node.args.get("symmetric"):
            return self.opaque(node)
        folded = [fold(each, self.query) for each in sides]
        united = unify([each for each in folded if each is not None], self.query)
        if united is None or not self._are_alike(sides, folded):
            return self.left_to_engine(node, "the bounds mix types")
        if not negated and len(united) >= 2 and _is_one_value(united[-2:], folded):
            return self.comparison(Operation.EQ, sides[0], sides[1], node)
        following = iter(united)
        operand, low, high = (None if each is None else next(following) for each in folded)
        parts = (
            self._meet(
                NEGATED[operation] if negated else operation, (sides[0], operand), bound, node
            )
            for operation, bound in (
                (Operation.GT_EQ, (sides[1], low)),
                (Operation.LT_EQ, (sides[2], high)),
            )
        )
        return any_of(parts) if negated else all_of(parts)

    def _are_alike(self, sides: Sequence[exp.Expr], folded: Sequence[Constant | None]) -> bool:
        """Whether the sides of a BETWEEN that are no constants are columns of one type.

        The engine converts all three sides to one type first, so any other may change what the
        constants are compared as.
        """
        others = [each for each, known in zip(sides, folded, strict=True) if known is None]
        if len(others) <= 1:
            return True
        types = [found.type for each in others if (found := self.column(each)) is not None]
        return len(types) == len(others) and len(set(map(str, types))) == 1

    def _is(self, node: exp.Is, *, negated: bool) -> Predicate:
        match node.expression:
            case exp.Null():
                return self._null(node.this, node, negated=negated)
            case exp.Boolean() as wanted:
                if not negated:
                    inside = Translator(self.resolve, self.query, self.for_explain, self.reasons)
                    return inside.implied(node.this, negated=not wanted.this)
                found = self.column(node.this)
                if found is None or not isinstance(found.type, t.BooleanType):
                    return self.opaque(node)
                other = Leaf(Operation.EQ, _term(found), not wanted.this)
                return any_of([Leaf(Operation.IS_NULL, _term(found)), other])
            case _:
                return self.opaque(node)

    def _null(self, operand: exp.Expr, node: exp.Expr, *, negated: bool) -> Predicate:
        found = self.column(operand)
        if found is None:
            return self.opaque(node)
        if isinstance(found.type, t.UnknownType):
            return ALWAYS_FALSE if negated else ALWAYS_TRUE
        if not is_pushable_type(found.type) or isinstance(found.type, t.VariantType):
            return self.left_to_engine(node, f"{found.type} columns have no null counts")
        return Leaf(Operation.NOT_NULL if negated else Operation.IS_NULL, _term(found))

    def _is_nan(self, node: exp.IsNan, *, negated: bool) -> Predicate:
        found = self.column(node.this)
        if found is None or not t.is_floating(found.type):
            return self.opaque(node)
        return Leaf(Operation.NOT_NAN if negated else Operation.IS_NAN, _term(found))

    def _boolean(self, node: exp.Expr, *, negated: bool) -> Predicate:
        """A condition that is a value: a constant, or a bare boolean column."""
        constant = fold(node, self.query)
        if constant is not None:
            match constant.kind:
                case Kind.NULL:
                    return ALWAYS_FALSE
                case Kind.BOOLEAN:
                    return ALWAYS_TRUE if constant.value != negated else ALWAYS_FALSE
            return self.opaque(node)
        found = self.column(node)
        if found is None or not isinstance(found.type, t.BooleanType):
            return self.opaque(node)
        return Leaf(Operation.EQ, _term(found), not negated)

    # -------------------------------------------------------------- LIKE and prefixes

    def _escape(self, node: exp.Escape, *, negated: bool) -> Predicate:
        like, escape = node.this, fold(node.expression, self.query)
        negate = False
        if isinstance(like, exp.Not):
            like, negate = like.this, True
        if not isinstance(like, exp.Like) or escape is None or escape.kind is not Kind.TEXT:
            return self.opaque(node)
        if len(escape.value) > 1:
            return self.opaque(node)
        negate = negate != bool(like.args.get("negate"))
        return self._like(like, escape.value or None, negated=negated != negate)

    def _like(self, node: exp.Like, escape: str | None, *, negated: bool) -> Predicate:
        found = self.column(node.this)
        pattern = fold(node.expression, self.query)
        if pattern is not None and pattern.kind is Kind.NULL:
            return ALWAYS_FALSE
        if found is None or not isinstance(found.type, t.StringType) or pattern is None:
            return self.opaque(node)
        if pattern.kind not in (Kind.TEXT, Kind.STRING):
            return self.opaque(node)
        found_like = like(_term(found), pattern.value, escape, negated=negated)
        return self.opaque(node) if found_like is None else found_like

    def _starts_with(
        self,
        operand: exp.Expr,
        prefix: exp.Expr,
        node: exp.Expr,
        *,
        negated: bool,
    ) -> Predicate:
        found = self.column(operand)
        constant = fold(prefix, self.query)
        if constant is not None and constant.kind is Kind.NULL:
            return ALWAYS_FALSE
        if found is None or not isinstance(found.type, t.StringType) or constant is None:
            return self.opaque(node)
        if constant.kind not in (Kind.TEXT, Kind.STRING):
            return self.opaque(node)
        return starts_with(_term(found), constant.value, negated=negated)

    # -------------------------------------------------------------- what is left to the engine

    def opaque(self, node: exp.Expr) -> Predicate:
        """True: the condition cannot be a predicate, for the reason in ``why_not``."""
        return self.left_to_engine(node, "")

    def left_to_engine(self, node: exp.Expr, reason: str) -> Predicate:
        """True, and the reason; that of ``why_not`` for an empty one."""
        if len(self.reasons) < _MOST_REASONS:
            text = f"{short_sql(node)}: " if self.for_explain else ""
            self.reasons.append(text + (reason or why_not(node)))
        elif len(self.reasons) == _MOST_REASONS:
            self.reasons.append("…")
        return ALWAYS_TRUE


def _is_one_value(bounds: list[Constant], folded: list[Constant | None]) -> bool:
    """Whether both bounds of a BETWEEN on a column are one value, such as 5 AND 5."""
    kinds = (Kind.INTEGER, Kind.TEXT, Kind.DATE)
    return folded[0] is None and bounds[0] == bounds[1] and bounds[0].kind in kinds


def _term(found: t.NestedField) -> Term:
    return Term(found.field_id, found.name)
