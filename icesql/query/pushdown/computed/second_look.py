"""A second look at a condition of which nothing, or not all, could be pushed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.query.constants.casts import to_date, to_timestamp, to_timestamptz
from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.current_time import clock_time
from icesql.query.constants.folding import fold
from icesql.query.pushdown.column_access import Resolve, column_of
from icesql.query.pushdown.computed.expression import COMPARISONS, OPAQUE, Expression, replaced
from icesql.query.pushdown.computed.of_files import file_condition
from icesql.query.pushdown.computed.predicate_tree import column_name, tree_of
from icesql.query.pushdown.computed.reading import Ask, reading_of
from icesql.query.pushdown.computed.simpler import simpler
from icesql.query.pushdown.computed.sql import NotWritable, write
from icesql.query.pushdown.predicate import translate

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.pruning.file_conditions import FileCondition

_MOST_CONSTANTS: Final = 20
_LONGEST: Final = 10_000
_UTC: Final = ("UTC", "ETC/UTC", "GMT", "ETC/GMT")
_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT",
                              "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"})  # fmt: skip


class Found(Struct, frozen=True):
    """What a second look gives: a predicate, and what is asked of each file."""

    predicate: Predicate = ALWAYS_TRUE
    condition: FileCondition | None = None


def second_look(
    condition: exp.Expr, sql: str, resolve: Resolve, query: QueryContext, ask: Ask
) -> Found:
    """What else follows from a condition for one scan, with the engine's help.

    The engine is asked for constants now, and for values of files when the scan is planned.
    """
    reading = reading_of(condition)
    written = None if reading is None else reading.expression()
    if written is None or written.is_free:
        return Found()
    resolved = resolved_in(written, resolve, query)
    if not resolved.inputs:
        return Found()
    implied = _with_constants(simpler(resolved), query, ask)
    fields = {column_name(each.value.field_id): each.value for each in implied.inputs}
    translation = translate(
        tree_of(implied), lambda column: fields.get(column.name), query, for_explain=False
    )
    if any(each.name == "opaque" for each in resolved.walk()):
        return Found(translation.predicate)
    if not translation.reasons and translation.predicate is not ALWAYS_TRUE:
        # The predicate says all that there is to say.
        return Found(translation.predicate)
    utc = query.settings.timezone.upper() in _UTC
    return Found(translation.predicate, file_condition(resolved, implied, sql, ask, utc=utc))


def resolved_in(written: Expression, resolve: Resolve, query: QueryContext) -> Expression:
    """The expression with fields for columns, opaque where they are not of this scan."""

    def change(each: Expression) -> Expression | None:
        match each.name:
            case "input":
                found = column_of(each.value, resolve)
                if found is None or not isinstance(found.type, t.PrimitiveType):
                    return OPAQUE
                return Expression("input", (), found)
            case "clock":
                return _clock(each.value, query)
            case _:
                return None

    return replaced(written, change)


def _clock(name: str, query: QueryContext) -> Expression:
    moment = clock_time(exp.Anonymous(this=name), query)
    if isinstance(moment, datetime):
        kind = "TIMESTAMP" if moment.tzinfo is None else "TIMESTAMPTZ"
        text = moment.isoformat(" ")
    elif isinstance(moment, date):
        kind, text = "DATE", moment.isoformat()
    else:
        return OPAQUE
    return Expression("cast", (Expression("literal", (), ("STRING", text)),), kind)


# ------------------------------------------------------------------ constants


def _with_constants(implied: Expression, query: QueryContext, ask: Ask) -> Expression:
    """The condition with the values of its constant parts that only the engine can compute."""
    wanted: dict[Expression, str] = {}

    def look(each: Expression) -> Expression | None:
        if each.name in ("and", "or") or not each.is_free:
            return None
        if each not in wanted and len(wanted) < _MOST_CONSTANTS:
            sql = _worth_asking(each, query)
            if sql is not None:
                wanted[each] = sql
        return each

    def compared(each: Expression) -> Expression | None:
        # A constant alone, such as a unit of time, is no side of a comparison.
        if each.name in (*COMPARISONS, "starts_with", "~~", "in", "is not distinct from"):
            for part in each.arguments:
                replaced(part, look) if not part.is_free else look(part)
            return each
        return None

    replaced(implied, compared)
    if not wanted or sum(map(len, wanted.values())) > _LONGEST:
        return implied
    selected = ", ".join(f"typeof({sql}), CAST({sql} AS VARCHAR)" for sql in wanted.values())
    rows = ask(f"SELECT {selected}", [], query)
    if not rows:
        return implied
    known = {
        each: constant
        for each, kind, text in zip(wanted, rows[0][::2], rows[0][1::2], strict=True)
        if (constant := _constant(kind, text, query)) is not None
    }

    def change(each: Expression) -> Expression | None:
        found = known.get(each)
        return None if found is None else Expression("constant", (each,), found)

    return replaced(implied, change)


def _worth_asking(each: Expression, query: QueryContext) -> str | None:
    """The SQL of a constant that folding gives no value for, None for all others."""
    if each.name == "literal" or not each.arguments:
        return None
    tree = tree_of(each)
    known = all(node.name != "unknown" for node in tree.find_all(exp.Anonymous))
    if known and fold(tree, query) is not None:
        return None
    try:
        return write(each, lambda _: "NULL")
    except NotWritable:
        return None


def _constant(kind: str, text: str | None, query: QueryContext) -> Constant | None:
    """The value of a type's name and a value's text, None where that is not certain."""
    if text is None:
        return Constant(Kind.NULL, None)
    typed = Constant(Kind.TEXT, text)
    try:
        match kind:
            case "VARCHAR":
                return Constant(Kind.STRING, text)
            case "BOOLEAN":
                return Constant(Kind.BOOLEAN, text == "true")
            case "DATE":
                return to_date(typed, query)
            case "TIMESTAMP":
                return to_timestamp(typed, query)
            case "TIMESTAMP WITH TIME ZONE":
                return to_timestamptz(typed, query)
            case "DOUBLE":
                # The text of a FLOAT has too few digits to be the same number here.
                return Constant(Kind.DOUBLE, float(text))
            case _ if kind in _INTEGERS:
                return Constant(Kind.INTEGER, int(text))
            case _ if kind.startswith("DECIMAL"):
                return Constant(Kind.DECIMAL, Decimal(text))
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return None
