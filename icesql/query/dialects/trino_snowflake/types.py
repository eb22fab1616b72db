"""The types of expressions, in the detail that the translation of operators needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.scope import Scope, below
from icesql.query.dialects.types import SqlType

T: Final = exp.DataType.Type
INTERVAL: Final = SqlType("interval")
ARRAY: Final = SqlType("array")
MAP: Final = SqlType("map")
ROW: Final = SqlType("struct")
DECIMAL: Final = SqlType("decimal")
TIME: Final = SqlType("time")

_OF_CASTS: Final[dict[Any, SqlType]] = {
    **{name: of for name, of in t.NAMED.items() if of != t.NULL},
    **dict.fromkeys((T.TINYINT, T.SMALLINT, T.INT), t.BIGINT),
    T.FLOAT: t.DOUBLE,
    T.DECIMAL: DECIMAL,
    **dict.fromkeys((T.NCHAR, T.NVARCHAR), t.STRING),
    **dict.fromkeys((T.TIMESTAMP, T.DATETIME), t.NTZ),
    T.TIME: TIME,
    T.UUID: t.UUID,
    T.ARRAY: ARRAY,
    T.MAP: MAP,
}  # fmt: skip
_WORDS: Final = {
    **dict.fromkeys(t.INTEGRAL, "integer"),
    **dict.fromkeys(t.FRACTIONAL, "double"),
    "string": "text",
    t.NTZ.kind: "timestamp",
    t.TIMESTAMP.kind: "timestamptz",
    ROW.kind: "row",
}


def word(of: SqlType) -> str:
    """The name of a type in messages."""
    return _WORDS.get(of.kind, of.kind)


def described(of: SqlType) -> str:
    """A value of a type in messages."""
    return "a value whose type is not known" if of == t.UNKNOWN else f"a {word(of)}"


def typed(made: exp.Expr, type: SqlType) -> exp.Expr:
    """``made`` with its type, which ``type_of`` then knows."""
    made.meta["type"] = type
    return made


def type_of_cast(to: exp.DataType) -> SqlType | None:
    """The type of a cast's target; None for a type that neither dialect has."""
    return _OF_CASTS.get(to.this)


def converted(argument: SqlType, wanted: SqlType) -> SqlType | None:
    """The argument's own type if DuckDB accepts it for a parameter of type ``wanted``."""
    fits = (
        argument.kind in (wanted.kind, "null")
        or (argument.kind in t.INTEGRAL and wanted.kind in t.INTEGRAL)
        or (argument.kind in t.NUMERIC and wanted == t.DOUBLE)
    )
    return argument if fits else None


def common(types: Iterable[SqlType]) -> SqlType:
    """The common type of these types; types other than numbers have to be equal."""
    found = t.NULL
    for each in types:
        if each.kind == "null" or found.kind == "null" or {each.kind, found.kind} <= _NUMBERS:
            found = t.common(found, each) or t.UNKNOWN
        elif each.kind != found.kind:
            return t.UNKNOWN
    return found


_NUMBERS: Final = frozenset(t.NUMERIC)


def type_of(node: exp.Expr, scope: Scope) -> SqlType:
    """The type of a translated expression, from its ``meta`` if set; UNKNOWN if undecided."""
    known = node.meta.get("type")
    if isinstance(known, SqlType):
        return known
    match node:
        case exp.Literal():
            return t.STRING if node.is_string else _type_of_number(node.name)
        case exp.Boolean():
            return t.BOOLEAN
        case exp.Null():
            return t.NULL
        case exp.Distinct():
            return type_of(node.expressions[0], scope)
        case (
            exp.Paren() | exp.Alias() | exp.Neg() | exp.Order() | exp.RespectNulls()
            | exp.Window() | exp.Filter() | exp.IgnoreNulls() | exp.WithinGroup()
        ) if node.this:  # fmt: skip
            return type_of(node.this, scope)
        case exp.Cast():
            return type_of_cast(node.to) or t.UNKNOWN
        case exp.Interval():
            return INTERVAL
        case exp.CurrentDate():
            return t.DATE
        case exp.CurrentTimestamp():
            return t.TIMESTAMP
        case exp.Localtimestamp():
            return t.NTZ
        case exp.DPipe() | exp.Concat():
            return t.STRING
        case exp.Array():
            return ARRAY
        case exp.Struct() | exp.Tuple():
            return ROW
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.Exists() | exp.Like():
            return t.BOOLEAN
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
            return arithmetic(type_of(node.this, scope), type_of(node.expression, scope))
        case exp.Case():
            branches = [each.args.get("true") for each in node.args.get("ifs") or ()]
            values = [*branches, node.args.get("default")]
            return common(type_of(each, scope) for each in values if each is not None)
        case exp.Column():
            return scope.type_of([part.name for part in node.parts])
        case exp.Dot():
            return below(type_of(node.this, scope), [node.expression.name])
        case _:
            return t.UNKNOWN


def arithmetic(left: SqlType, right: SqlType) -> SqlType:
    """The type of ``+ - *`` with operands of two types."""
    kinds = {left.kind, right.kind}
    if kinds <= _NUMBERS:
        return t.common(left, right) or t.UNKNOWN
    if INTERVAL.kind in kinds and kinds & {*t.MOMENTS}:
        return left if left.kind in t.MOMENTS else right
    if INTERVAL.kind in kinds and kinds <= {INTERVAL.kind, *t.INTEGRAL}:
        return INTERVAL
    return t.UNKNOWN


def _type_of_number(text: str) -> SqlType:
    if "e" in text.lower():
        return t.DOUBLE
    return DECIMAL if "." in text else t.BIGINT
