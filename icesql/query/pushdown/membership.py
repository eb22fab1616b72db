"""``x IN (…)`` as a predicate: constants of one type, long lists and rows of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, Leaf, Operation, Predicate, Term
from icesql.query.constants.casts import unify
from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.folding import fold
from icesql.query.pushdown.column_access import tuple_parts
from icesql.query.pushdown.comparison import all_of, any_of
from icesql.query.pushdown.listed_values import constants_of, stored_values
from icesql.sql.parser.literal_list import LiteralList, held

if TYPE_CHECKING:
    from icesql.query.pushdown.predicate import Translator


def membership(to: Translator, node: exp.In, *, negated: bool) -> Predicate:
    """What follows from ``node``, ``x IN (…)``, being true; from its being false if ``negated``."""
    if node.args.get("query") is not None:
        return to.left_to_engine(node, "the list comes from a subquery")
    if node.args.get("unnest") is not None or node.args.get("field") is not None:
        return to.opaque(node)
    values = held(node)
    if values is not None:
        return _in_list(to, node, values, negated=negated)
    items = [fold(each, to.query) for each in node.expressions]
    constants = [each for each in items if each is not None]
    lefts = tuple_parts(node.this)
    if len(constants) < len(items) or not constants:
        if lefts and not negated and items:
            return _tuples_in(to, node, lefts)
        return to.left_to_engine(node, "the list holds more than constants")
    return _among(to, node, constants, negated=negated)


def _in_list(to: Translator, node: exp.In, values: LiteralList, *, negated: bool) -> Predicate:
    if negated and values.has_null:
        return ALWAYS_FALSE
    found = to.column(node.this)
    if found is not None:
        known = stored_values(values, found.type)
        if known is not None:
            if negated:
                operation = Operation.NOT_IN if known else Operation.NOT_NULL
                return Leaf(operation, Term(found.field_id, found.name), known or None)
            return (
                Leaf(Operation.IN, Term(found.field_id, found.name), known)
                if known
                else ALWAYS_FALSE
            )
    return _among(to, node, list(constants_of(values)), negated=negated)


def _among(to: Translator, node: exp.In, constants: list[Constant], *, negated: bool) -> Predicate:
    if negated and any(each.kind is Kind.NULL for each in constants):
        return ALWAYS_FALSE
    constants = [each for each in constants if each.kind is not Kind.NULL]
    united = unify(constants, to.query)
    if united is None:
        return to.left_to_engine(node, "the list mixes types")
    if negated:
        return all_of(to.compare(Operation.NOT_EQ, node.this, each) for each in united)
    return any_of(to.compare(Operation.EQ, node.this, each) for each in united)


def _tuples_in(to: Translator, node: exp.In, lefts: Sequence[exp.Expr]) -> Predicate:
    rows = [tuple_parts(each) for each in node.expressions]
    if not all(len(row) == len(lefts) for row in rows):
        return to.opaque(node)
    # Each column of the rows has one type: a list that mixes them is converted by the engine.
    for position in range(len(lefts)):
        folded = [fold(row[position], to.query) for row in rows]
        kinds = {each.kind if each else None for each in folded} - {Kind.NULL}
        if None in kinds or len(kinds) > 1:
            return to.left_to_engine(node, "the list holds more than constants of one type")
    return any_of(
        all_of(to.equal_parts(left, value, node) for left, value in zip(lefts, row, strict=True))
        for row in rows
    )
