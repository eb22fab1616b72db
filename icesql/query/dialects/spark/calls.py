"""Calls of functions: find the row of the table that fits, and convert its arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from sqlglot import exp

from icesql.errors import nearest
from icesql.frozen import Frozen
from icesql.query.dialects import types as t
from icesql.query.dialects.functions import (
    Match,
    functions,
    refused,
    resolve,
    takes_count,
)
from icesql.query.dialects.spark.casts import cast
from icesql.query.dialects.templates import duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.function_table import SPARK
from icesql.sql.positions import unsupported
from icesql.sql.remedies import NO_ROW, SIMILAR, meaning

DIALECT: Final = "Spark's dialect"
# Implicit numeric conversions go to the right in this row only.
_WIDENS: Final = (*t.INTEGRAL, "decimal", "float", "double")


class Typed(Frozen):
    """An expression translated to DuckDB, with its type in Spark."""

    node: exp.Expr
    type: SqlType


# Builds a call from its typed arguments and the call.
Built = Callable[[list[Typed], "exp.Expr"], Typed]


def by_duckdb(
    text: str, kind: SqlType, *values: Typed | exp.Expr | str, exact: bool = True
) -> Typed:
    """DuckDB's expression ``text`` of these values, which has the type ``kind`` in Spark."""
    nodes = (each.node if isinstance(each, Typed) else each for each in values)
    return Typed(duckdb(text, *nodes, exact=exact), kind)


def check_parts(
    node: exp.Expr, known: Collection[str], what: str, at: exp.Expr | None = None
) -> None:
    """Refuse a node with parts that are not known. Raises UnsupportedSqlError."""
    for part, value in node.args.items():
        if value and part not in known:
            name = part.strip("_").upper()
            raise unsupported(f"{what} {name} in {DIALECT}", node if at is None else at)


def constant(node: exp.Expr) -> str | None:
    """The text of a constant number, text or boolean; None for other expressions."""
    if isinstance(node, exp.Boolean):
        return str(node.this)
    return node.name if isinstance(node, exp.Literal) else None


def constant_text(value: Typed, at: exp.Expr, what: str) -> str:
    """The text of a constant argument. Raises UnsupportedSqlError for other arguments."""
    if not value.node.is_string:
        raise unsupported(f"{what} that is no constant text in {DIALECT}", at)
    return value.node.name


def find(name: str, given: Sequence[Typed], at: exp.Expr) -> Match:
    """The row that accepts these arguments. Raises UnsupportedSqlError at ``at``."""
    rows = functions(SPARK).get(name.lower())
    if rows is None:
        hint = meaning(name, SPARK) or nearest(name.lower(), functions(SPARK), NO_ROW, SIMILAR)
        raise unsupported(f"the function {name.lower()}() in {DIALECT}", at, hint)
    if not takes_count(rows, len(given)):
        counts = sorted({len(row.takes) - row.repeats for row in rows})
        takes = " or ".join(map(str, counts))
        raise unsupported(
            f"{name.lower()}() with {len(given)} arguments in {DIALECT}", at, f"it takes {takes}"
        )
    constants = [constant(each.node) for each in given]
    match = resolve(rows, [each.type for each in given], constants, implicit)
    if match is None:
        shown, hint = refused(rows, [str(each.type) for each in given], constants)
        hint = hint or "cast the arguments to types that it takes"
        raise unsupported(f"{name.lower()}({', '.join(shown)}) in {DIALECT}", at, hint)
    return match


def implicit(given: SqlType, wanted: SqlType) -> SqlType | None:
    """The type to which Spark converts an argument for ``wanted``; None if it does not."""
    if given.kind in (wanted.kind, "null"):
        return given if given.kind == wanted.kind else wanted
    if given.kind == "string":
        known = wanted.kind in t.SCALAR and (wanted.kind != "decimal" or wanted.precision)
        return wanted if known else None
    if wanted.kind == "string":
        return wanted if given.kind in t.SCALAR and given.kind != "binary" else None
    if given.kind in _WIDENS and wanted.kind in _WIDENS:
        if wanted.kind == "decimal":
            return t.as_decimal(given) if given.kind in t.INTEGRAL else None
        wider = _WIDENS.index(given.kind) < _WIDENS.index(wanted.kind)
        return wanted if wider else None
    if given.kind in t.MOMENTS and wanted.kind in t.MOMENTS:
        return wanted
    return None


def converted(value: Typed, to: SqlType, at: exp.Expr) -> exp.Expr:
    """``value`` cast to a parameter type. Raises UnsupportedSqlError at ``at``."""
    if to == value.type or to.kind == "any" or to.kind == "null":
        return value.node
    made = cast(value.node, value.type, to)
    if made is None:
        raise unsupported(f"a {value.type} as {to} in {DIALECT}", at)
    return made


def unified(values: Sequence[Typed], at: exp.Expr, what: str) -> tuple[list[exp.Expr], SqlType]:
    """Values converted to their common type. Raises UnsupportedSqlError at ``at``."""
    found = t.NULL
    for value in values:
        both = t.common(found, value.type)
        if both is None or (
            both.kind == "unknown" and any(v.type != values[0].type for v in values)
        ):
            raise unsupported(f"{what} of {found} and {value.type} in {DIALECT}", at, "cast them")
        found = both
    return [converted(value, found, at) for value in values], found
