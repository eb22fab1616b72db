"""Predicates as JSON, the form in which REST catalogs take and give them.

Source: Iceberg's OpenAPI specification, "Predicate"; Java ``ExpressionParser``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, cast

from icesql.iceberg import types as t
from icesql.iceberg.calendar import days_from_civil, units_per_day
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    SETS,
    UNARY,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
    Term,
    negated,
)
from icesql.iceberg.metadata.json_fields import Malformed, as_list, as_object, as_text
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value
from icesql.iceberg.single_value_json import single_value_json

_SPELLINGS: Final = {each: each.name.lower().replace("_", "-") for each in Operation}
_OPERATIONS: Final = {spelling: operation for operation, spelling in _SPELLINGS.items()}
# Java reads the years from 1 to 9999.
_FIRST_DAY, _LAST_DAY = days_from_civil(1, 1, 1), days_from_civil(9999, 12, 31)


class _NoForm(Exception):
    """A value that JSON, or Java's reading of it, has no form for."""


def predicate_json(predicate: Predicate, schema: Schema) -> Any:
    """``predicate`` or a weaker one as JSON; ``True`` if no part of it has a JSON form.

    Weaker where a leaf has no form that every server reads alike: transforms, bytes, columns in
    lists and maps or with dots in their names, years that four digits do not hold. Servers order
    -0.0 before 0.0, which are equal here, so a comparison with zero becomes a range.
    """
    match predicate:
        case And(left, right):
            return _joined("and", predicate_json(left, schema), predicate_json(right, schema))
        case Or(left, right):
            return _joined("or", predicate_json(left, schema), predicate_json(right, schema))
        case Leaf():
            try:
                return _leaf_json(predicate, schema)
            except _NoForm:
                return True
        case _:
            return predicate is not ALWAYS_FALSE


def parse_predicate(json: Any, schema: Schema) -> Predicate:
    """The predicate of a JSON value, or a stronger one: its leaves are false for NULL.

    Raises Malformed for JSON that is not a predicate, or names a column or a value that ``schema``
    does not have.
    """
    if isinstance(json, bool):
        return ALWAYS_TRUE if json else ALWAYS_FALSE
    node = as_object(json, "an expression")
    kind = as_text(node.get("type"), "the type of an expression").lower().replace("_", "-")
    match kind:
        case "true" | "false":
            return ALWAYS_TRUE if kind == "true" else ALWAYS_FALSE
        case "literal" if isinstance(node.get("value"), bool):
            return ALWAYS_TRUE if node["value"] else ALWAYS_FALSE
        case "not":
            return negated(parse_predicate(node.get("child"), schema))
        case "and" | "or":
            left = parse_predicate(node.get("left"), schema)
            right = parse_predicate(node.get("right"), schema)
            return left & right if kind == "and" else left | right
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise Malformed(f"{kind[:60]!r} is no expression that is known")
    return _parse_leaf(operation, node, schema)


# ---------------------------------------------------------------------- to JSON


def _joined(kind: str, left: Any, right: Any) -> Any:
    neutral = kind == "and"
    if left is neutral or right is (not neutral):
        return right
    if right is neutral or left is (not neutral):
        return left
    return {"type": kind, "left": left, "right": right}


def _leaf_json(leaf: Leaf, schema: Schema) -> Any:
    field_id = leaf.term.field_id
    field = schema.field_by_id.get(field_id)
    if field is None or leaf.term.transform != "identity" or schema.inside_repeated(field_id):
        raise _NoForm
    if any("." in each.name for each in (field, *schema.ancestors(field_id))):
        raise _NoForm
    term, operation, type = schema.name_by_id[field_id], leaf.operation, field.type
    if operation in UNARY:
        if "nan" in _SPELLINGS[operation] and not t.is_floating(type):
            raise _NoForm
        return {"type": _SPELLINGS[operation], "term": term}
    if operation in SETS:
        if t.is_floating(type) and 0.0 in leaf.literal:
            raise _NoForm
        values = sorted((value_json(type, each) for each in leaf.literal), key=repr)
        return {"type": _SPELLINGS[operation], "term": term, "values": values}

    def one(operation: Operation, value: Any) -> Any:
        spelled = value_json(type, value)
        return {"type": _SPELLINGS[operation], "term": term, "value": spelled}

    if isinstance(type, t.UUIDType) and operation not in (Operation.EQ, Operation.NOT_EQ):
        raise _NoForm  # servers differ in the order of these
    if t.is_floating(type) and leaf.literal == 0:
        match operation:
            case Operation.EQ:
                return _joined("and", one(Operation.GT_EQ, -0.0), one(Operation.LT_EQ, 0.0))
            case Operation.GT_EQ | Operation.LT:
                return one(operation, -0.0)
            case Operation.LT_EQ | Operation.GT:
                return one(operation, 0.0)
            case _:
                raise _NoForm
    return one(operation, leaf.literal)


def value_json(type: t.IcebergType, value: Any) -> Any:
    """A value in the internal form of a primitive type as a JSON single value."""
    match type:
        case t.BooleanType() | t.DecimalType() | t.UUIDType() | t.TimeType():
            return single_value_json(type, value)
        case t.IntegerType() | t.LongType():
            if not -(1 << 63) <= value < 1 << 63:
                raise _NoForm
            return value
        case t.FloatType() | t.DoubleType():
            if not math.isfinite(value):
                raise _NoForm
            return float(value)
        case t.StringType():
            try:
                cast("str", value).encode()
            except (UnicodeEncodeError, AttributeError) as error:
                raise _NoForm from error
            return value
        case t.DateType() | t.AnyTimestamp():
            if not _FIRST_DAY <= value // units_per_day(type) <= _LAST_DAY:
                raise _NoForm
            return single_value_json(type, value)
        case _:
            raise _NoForm


# ---------------------------------------------------------------------- from JSON


def _parse_leaf(operation: Operation, node: Mapping[str, Any], schema: Schema) -> Predicate:
    named = node.get("term")
    if isinstance(named, Mapping) and named.get("type") == "reference":
        named = named.get("term")
    if not isinstance(named, str):
        raise Malformed("an expression over a transform or over nothing")
    ids = [each for each, name in schema.name_by_id.items() if name == named]
    if len(ids) != 1:
        raise Malformed(f"an expression over the column {named[:100]!r}")
    (field_id,) = ids
    term, type = Term(field_id, named), schema.field_by_id[field_id].type
    if operation in UNARY:
        return Leaf(operation, term)
    if operation in SETS:
        values = as_list(node.get("values"), "the values of an expression")
        return Leaf(operation, term, frozenset(_literal(type, each) for each in values))
    return Leaf(operation, term, _literal(type, node.get("value")))


def _literal(type: t.IcebergType, json: Any) -> Any:
    if isinstance(json, Mapping) and json.get("type") == "literal":
        json = json.get("value")
    value = parse_single_value(type, json) if isinstance(type, t.PrimitiveType) else None
    if value is None:
        raise Malformed(f"an expression compares a column of type {type} with {str(json)[:60]!r}")
    return value
