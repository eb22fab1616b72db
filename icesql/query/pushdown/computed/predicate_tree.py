"""Expressions as trees for the translator, which knows the bounds of columns and of time."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.query.pushdown.computed.expression import Expression

_Type = exp.DataType.Type
_BINARY: Final[dict[str, type[exp.Expression]]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "starts_with": exp.StartsWith, "~~": exp.Like,
    "is not distinct from": exp.NullSafeEQ, "is distinct from": exp.NullSafeNEQ,
    "and": exp.And, "or": exp.Or, "left": exp.Left,
}  # fmt: skip
_CASTS: Final = {
    "DATE": _Type.DATE,
    "TIMESTAMP": _Type.TIMESTAMP,
    "TIMESTAMPTZ": _Type.TIMESTAMPTZ,
    "DOUBLE": _Type.DOUBLE,
    "FLOAT": _Type.FLOAT,
    "INTEGER": _Type.INT,
    "BIGINT": _Type.BIGINT,
    "VARCHAR": _Type.VARCHAR,
    "BOOLEAN": _Type.BOOLEAN,
    "TIME": _Type.TIME,
    "UUID": _Type.UUID,
    "BLOB": _Type.VARBINARY,
}
# Of ``to_days`` of whole numbers, as DuckDB's parser reads INTERVAL 3 DAY.
_UNITS: Final = {"to_years": "YEAR", "to_months": "MONTH", "to_days": "DAY", "to_hours": "HOUR",
                 "to_minutes": "MINUTE", "to_seconds": "SECOND", "to_weeks": "WEEK"}  # fmt: skip


def column_name(field_id: int) -> str:
    """What a tree calls the column of a field."""
    return f"c{field_id}"


def tree_of(expression: Expression) -> exp.Expression:
    """The tree of an expression; a call that nothing is known of for what has none."""
    parts = expression.arguments
    match expression.name:
        case "input":
            return exp.column(column_name(expression.value.field_id))
        case "constant":
            known = exp.Null()
            known.meta["constant"] = expression.value
            return known
        case "literal":
            return _literal(*expression.value)
        case "cast":
            kind = _cast_type(expression.value)
            if kind is None:
                return _unknown()
            if expression.value == "INTERVAL":
                return exp.Interval(this=tree_of(parts[0]))
            return exp.Cast(this=tree_of(parts[0]), to=kind)
        case "not":
            return exp.Not(this=tree_of(parts[0]))
        case "-" if len(parts) == 1:
            return exp.Neg(this=tree_of(parts[0]))
        case "is null":
            return exp.Is(this=tree_of(parts[0]), expression=exp.Null())
        case "is not null":
            return exp.Not(this=exp.Is(this=tree_of(parts[0]), expression=exp.Null()))
        case "!~~" if len(parts) == 2:
            return exp.Not(this=exp.Like(this=tree_of(parts[0]), expression=tree_of(parts[1])))
        case "in" if parts:
            return exp.In(this=tree_of(parts[0]), expressions=[tree_of(each) for each in parts[1:]])
        case "and" | "or":
            node = tree_of(parts[0])
            for each in parts[1:]:
                node = _BINARY[expression.name](this=node, expression=tree_of(each))
            return node
        case "date_part" | "datepart" | "year":
            return _year(expression)
        case "date_trunc" | "datetrunc" if len(parts) == 2 and parts[0].text is not None:
            return exp.TimestampTrunc(this=tree_of(parts[1]), unit=exp.var(parts[0].text))
        case "substring" | "substr" if len(parts) == 3 and parts[1].whole_number == 1:
            return exp.Left(this=tree_of(parts[0]), expression=tree_of(parts[2]))
        case name if name in _UNITS:
            return _interval(expression)
        case name if name in _BINARY and len(parts) == 2:
            return _BINARY[name](this=tree_of(parts[0]), expression=tree_of(parts[1]))
        case _:
            return _unknown()


def _unknown() -> exp.Expression:
    return exp.Anonymous(this="unknown")


def _literal(kind: str, text: str) -> exp.Expression:
    match kind:
        case "STRING":
            return exp.Literal.string(text)
        case "BOOLEAN":
            return exp.Boolean(this=text == "true")
        case "NULL":
            return exp.Null()
        case _ if text.startswith("-"):
            return exp.Neg(this=exp.Literal.number(text[1:]))
        case _:
            return exp.Literal.number(text)


def _cast_type(name: str) -> exp.DataType | None:
    if name == "INTERVAL":
        return exp.DataType(this=_Type.INTERVAL)
    if name.startswith("DECIMAL("):
        sizes = name[len("DECIMAL(") : -1].split(", ")
        expressions = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in sizes]
        return exp.DataType(this=_Type.DECIMAL, expressions=expressions)
    kind = _CASTS.get(name)
    return None if kind is None else exp.DataType(this=kind)


def _year(expression: Expression) -> exp.Expression:
    parts = expression.arguments
    if expression.name == "year" and len(parts) == 1:
        return exp.Year(this=tree_of(parts[0]))
    if len(parts) == 2 and parts[0].text is not None and parts[0].text.lower() == "year":
        return exp.Year(this=tree_of(parts[1]))
    return _unknown()


def _interval(expression: Expression) -> exp.Expression:
    amount = expression.arguments[0]
    while amount.name in ("cast", "trunc") and amount.arguments:
        amount = amount.arguments[0]
    number = amount.whole_number
    if number is None:
        return _unknown()
    value = _literal("INTEGER", str(number))
    return exp.Interval(this=value, unit=exp.var(_UNITS[expression.name]))
