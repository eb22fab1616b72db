"""The implications of a condition for one scan: a predicate, and a condition on files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.query.constants.constant import Constant, Kind
from icesql.query.constants.current_time import clock_value, time_literal
from icesql.query.constants.evaluated import evaluated
from icesql.query.names import Resolve, child_of
from icesql.query.pushdown.computed.expression import (
    COMPARISONS,
    MOST_NODES,
    OPAQUE,
    Expression,
    replaced,
)
from icesql.query.pushdown.computed.reading import expression_of_value
from icesql.query.pushdown.computed.simpler import simpler
from icesql.query.pushdown.predicate import OTHER_SCAN, Translator

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.pruning.file_conditions import FileCondition

_MOST_CONSTANTS: Final = 20
_LONGEST: Final = 10_000
_UTC: Final = ("UTC", "ETC/UTC", "GMT", "ETC/GMT")
# Functions with the same result in every engine.
_CALENDAR: Final = frozenset({"literal", "cast", "+", "-", "*", "trunc", "date_trunc", "make_date",
                              "to_years", "to_months", "to_weeks", "to_days", "to_hours",
                              "to_minutes", "to_seconds"})  # fmt: skip
_RESOLVED: Final = frozenset({"input", "array_extract", "clock"})
_EVALUATED: Final = (*COMPARISONS, "starts_with", "~~", "in", "between", "is not distinct from")


class Implied(Frozen):
    """A predicate, the reasons why the engine still needs the condition, and a condition on files.

    The predicate holds for every row for which the condition is true.
    """

    predicate: Predicate = ALWAYS_TRUE
    reasons: tuple[str, ...] = ()
    condition: FileCondition | None = None


def implied_by(
    written: Expression,
    resolve: Resolve,
    query: QueryContext,
    sql: str = "",
    *,
    asks: bool = True,
) -> Implied:
    """The implications of a condition for the scan whose columns ``resolve`` finds.

    ``resolve`` returns the field, at any depth, of a column of the condition in the scan,
    None for columns of other tables; terms have the names of the fields. With ``asks`` the engine
    of ``query`` computes constants now, and conditions on files when the scan is planned. If
    Spark runs the query, only constants that are the same in every engine are computed, and no
    conditions on files. ``sql`` is the text of the condition for users.
    """
    asks = asks and query.evaluate is not None
    prunes_files = query.settings.engine != "spark"
    try:
        resolved = resolved_in(written, resolve, query)
        implied, translator = simpler(resolved), Translator(query)
        if asks:
            translator.known = _evaluated_constants(implied, translator, everything=prunes_files)
        predicate = translator.implied(implied)
        found = Implied(predicate, tuple(translator.reasons))
        if not asks or not prunes_files or not (found.reasons or predicate is ALWAYS_TRUE):
            return found
        from icesql.query.pushdown.computed.range_question import file_condition

        nodes = resolved.walk()
        if len(nodes) > MOST_NODES or any(each.name == "opaque" for each in nodes):
            return found
        utc = query.settings.timezone.upper() in _UTC
        known = _with_constants(implied, translator.known)
        return replace(found, condition=file_condition(resolved, known, sql, utc=utc))
    except RecursionError:
        return Implied(reasons=("it is nested too deeply",))


def resolved_in(written: Expression, resolve: Resolve, query: QueryContext) -> Expression:
    """The expression with fields for columns; columns of other scans are opaque."""

    def change(each: Expression) -> Expression | None:
        if each.name == "clock":
            return _clock(each.value, query)
        found = _field(each, resolve)
        if found is None and each.name == "array_extract":
            return None
        if found is None:
            return Expression("opaque", (), OTHER_SCAN)
        if not isinstance(found.type, t.PrimitiveType):
            return Expression("opaque", (), f"{found.type} columns have no bounds")
        return Expression("input", (), found)

    return replaced(written, change, _RESOLVED)


def _field(each: Expression, resolve: Resolve) -> t.NestedField | None:
    """The field of an input or of a struct access to one, else None."""
    if each.name == "input":
        return resolve(each.value)
    if each.name != "array_extract" or each.arguments[1].text is None:
        return None
    return child_of(_field(each.arguments[0], resolve), each.arguments[1].text)


def _clock(name: str, query: QueryContext) -> Expression:
    moment = clock_value(name, query)
    return OPAQUE if moment is None else expression_of_value(time_literal(moment))


# ------------------------------------------------------------------ constants


def _evaluated_constants(
    implied: Expression, translator: Translator, *, everything: bool
) -> dict[Expression, Constant]:
    """The values of constant operands of comparisons that are not literals."""
    wanted: dict[Expression, str] = {}
    # A constant elsewhere, such as a unit of time, is not an operand of a comparison.
    sides = [side for each in implied.outermost(_EVALUATED) for side in each.arguments]
    for each in [part for side in sides for part in side.free_parts() if part.arguments]:
        if not everything and any(one.name not in _CALENDAR for one in each.walk()):
            continue
        if each not in wanted and translator.constant(each) is None:
            from icesql.query.pushdown.computed.sql import NotWritable, write

            with suppress(NotWritable):
                wanted[each] = write(each, lambda _: "NULL")
    if len(wanted) > _MOST_CONSTANTS or sum(map(len, wanted.values())) > _LONGEST:
        return {}
    return evaluated(wanted, translator.query)


def _with_constants(implied: Expression, known: Mapping[Expression, Constant]) -> Expression:
    """The condition with the engine's values in place of the constant expressions."""
    if not known:
        return implied

    def change(each: Expression) -> Expression | None:
        found = known.get(each)
        # The form of an interval matters, not only its value.
        if found is None or found.kind is Kind.INTERVAL:
            return None
        return Expression("constant", (each,), found)

    return replaced(implied, change)
