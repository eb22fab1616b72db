"""Write expressions as SQL from which the engine reads the same expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icesql.iceberg import types as t
from icesql.query.pushdown.computed.expression import COMPARISONS, Expression
from icesql.quoting import literal as quoted_text
from icesql.sql.acceptance import planned_functions

# ------------------------------------------------------------------ functions of the engine


KNOWN: Final = planned_functions()
# The result of these functions may be longer than the arguments by a factor: an expression may have
# one such call.
GROWING: Final = frozenset({"replace", "translate", "regexp_extract", "strftime"})
# Macros of the engine that repeat an argument, which doubles its size: only few calls are allowed.
DOUBLING: Final = frozenset({"nullif", "split_part"})


# ------------------------------------------------------------------ expressions


_INFIX: Final = {*COMPARISONS, "is not distinct from", "is distinct from", "and", "or"}

# Nested calls repeat an argument 2 to the power of this many times.
_MOST_DOUBLED: Final = 8


class NotWritable(Exception):
    """Raised for an expression with a function that the engine may not evaluate for pruning."""


def write(expression: Expression, input_of: Callable[[Expression], str]) -> str:
    """The SQL of an expression; ``input_of`` returns that of each column. Raises NotWritable."""
    if sum(each.name in DOUBLING for each in expression.walk()) > _MOST_DOUBLED:
        raise NotWritable(expression.name)

    def of(each: Expression) -> str:
        parts = each.arguments
        match each.name:
            case "input":
                return input_of(each)
            case "literal":
                return _literal(*each.value)
            case "constant":
                return of(parts[0])
            case "cast" | "try_cast":
                return f"{each.name}({of(parts[0])} AS {each.value})"
            case "not":
                return f"(NOT {of(parts[0])})"
            case "is null" | "is not null":
                return f"({of(parts[0])} {each.name})"
            case "between":
                first, low, high = map(of, parts)
                return f"({first} BETWEEN {low} AND {high})"
            case "in":
                items = ", ".join(map(of, parts[1:]))
                return f"({of(parts[0])} IN ({items}))"
            case "case":
                *pairs, otherwise = map(of, parts)
                whens = " ".join(
                    f"WHEN {when} THEN {then}"
                    for when, then in zip(pairs[::2], pairs[1::2], strict=True)
                )
                return f"(CASE {whens} ELSE {otherwise} END)"
            case "row" | "coalesce":
                return f"{each.name}({', '.join(map(of, parts))})"
            case name if name in _INFIX:
                return "(" + f" {name} ".join(map(of, parts)) + ")"
            case name if name in KNOWN:
                return f'"{name}"({", ".join(map(of, parts))})'
            case _:
                raise NotWritable(each.name)

    return of(expression)


def _literal(kind: str, text: str) -> str:
    match kind:
        case "STRING":
            return quoted_text(text)
        case "NULL":
            return "NULL"
        case _:
            return f"({text})" if text.startswith("-") else text


_TYPES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimestampType: "TIMESTAMP",
    t.TimestamptzType: "TIMESTAMPTZ",
    t.StringType: "VARCHAR",
}


def type_sql(column_type: t.IcebergType) -> str:
    """DuckDB's name of a type whose values can be sent to the engine, "" for other types."""
    if isinstance(column_type, t.DecimalType):
        return f"DECIMAL({column_type.precision}, {column_type.scale})"
    return _TYPES.get(type(column_type), "")
