"""Translate a condition to an Iceberg predicate that it implies, and to a condition on files.

Negation is pushed to the leaves under three-valued logic as the expression is walked: NOT of a
comparison is the opposite comparison, which is NULL for the same rows. A part without an Iceberg
form becomes true, under AND and under OR, so the predicate is never stricter than the
condition. ``implied_by`` finds everything that a condition implies for one scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
    matches,
)
from icesql.query.constants.constant import EXACT, Constant, Kind, NotConstant
from icesql.query.constants.evaluated import cast, evaluated, moved, to_timestamp, unify
from icesql.query.constants.times import interval_of
from icesql.query.constants.volatile import clock_value, time_literal
from icesql.query.names import Resolve, child_of, constants_of, stored_values
from icesql.query.pushdown.comparison import (
    all_of,
    any_of,
    compare_constant,
    inverted,
    left_of,
    like,
    starts_with,
)
from icesql.query.pushdown.computed.expression import (
    COMPARISONS,
    FLIPPED,
    MOST_NODES,
    OPAQUE,
    OPPOSITE,
    Expression,
    expression_of_value,
    replaced,
)
from icesql.query.pushdown.computed.simpler import simpler
from icesql.sql.parser.literal_list import LiteralList

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.scan.pruning.file_conditions import FileCondition


_TEXTS: Final = (Kind.TEXT, Kind.STRING)
_NUMBERS: Final = (Kind.INTEGER, Kind.DECIMAL)
OTHER_SCAN: Final = "it does not belong to one scan alone"
_NO_FUNCTIONS: Final = ("cast", "try_cast", "case", "and", "or", "not", "in", "between", "row")
# A condition of 10,000 terms has as many reasons, too many to read.
_MOST_REASONS: Final = 20


class Translator(Struct):
    """Walks one condition; ``reasons`` collects why parts of it are left to the engine.

    NULL, NaN, zeros and literals that the column's type cannot hold: see ``iceberg.expressions``.
    ``known`` are constants that the engine evaluated.
    """

    query: QueryContext
    known: Mapping[Expression, Constant] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def implied(self, each: Expression, *, negated: bool = False) -> Predicate:
        """The predicate implied if a condition is true (``negated``: false) for a row."""
        parts = each.arguments
        match each.name:
            case "not":
                return self.implied(parts[0], negated=not negated)
            case "and" | "or":
                found = (self.implied(part, negated=negated) for part in parts)
                return all_of(found) if (each.name == "and") != negated else any_of(found)
            case name if name in COMPARISONS:
                return self._comparison(OPPOSITE[name] if negated else name, *parts)
            case "is distinct from" | "is not distinct from":
                return self._distinct(each, distinct=(each.name == "is distinct from") != negated)
            case "between":
                return self._between(parts, negated=negated)
            case "in":
                return self._in(each, negated=negated)
            case "is null" | "is not null":
                return self._null(parts[0], is_null=(each.name == "is null") != negated)
            case "~~" | "!~~" | "like_escape" | "not_like_escape" if len(parts) > 1:
                return self._like(
                    each, negated=negated != (each.name in ("!~~", "not_like_escape"))
                )
            case "starts_with" | "prefix" | "^@" if len(parts) == 2:
                return self._of_text(
                    each, lambda term, text: starts_with(term, text, negated=negated)
                )
            case "isnan" if parts and parts[0].is_column(t.FloatType, t.DoubleType):
                return Leaf(Operation.NOT_NAN if negated else Operation.IS_NAN, term_of(parts[0]))
            case _:
                return self._boolean(each, negated=negated)

    # -------------------------------------------------------------- constants

    def constant(self, each: Expression) -> Constant | None:
        """The value of a literal, a cast literal, or an expression that the engine evaluated."""
        try:
            match each.name:
                case "literal":
                    return _literal(*each.value)
                case "constant":
                    constant: Constant = each.value
                    return constant
                case "cast" | "try_cast":
                    inner = self.constant(each.arguments[0])
                    found = None if inner is None else cast(inner, each.value, self.query)
                    return found or self.known.get(each)
                case "+" | "-":
                    return self._sum(each) or self.known.get(each)
                case name if name.startswith("to_") and len(each.arguments) == 1:
                    return _interval(name[3:], each.arguments[0]) or self.known.get(each)
        except (ValueError, OverflowError, ArithmeticError, NotConstant):
            pass
        return self.known.get(each)

    def _sum(self, each: Expression) -> Constant | None:
        """Exact sums, and common sums of times and intervals, without a query to the engine."""
        *first, last = (self.constant(part) for part in each.arguments)
        if last is None or last.kind not in (*_NUMBERS, Kind.DOUBLE, Kind.INTERVAL):
            return None
        with localcontext(EXACT):
            right = -last.value if each.name == "-" else last.value
            return self._added(first[0], last.kind, right) if first else Constant(last.kind, right)

    def _added(self, left: Constant | None, other: Kind, right: Any) -> Constant | None:
        match left, other:
            case Constant(Kind.NULL), _:
                return left
            case Constant(Kind.DATE, value, None), Kind.INTEGER:
                return Constant(Kind.DATE, value + right)
            case Constant(Kind.DATE | Kind.TIMESTAMP), Kind.INTERVAL:
                clock = to_timestamp(left, self.query)
                return clock and moved(clock, right, self.query)
            case Constant(Kind.TIMESTAMPTZ), Kind.INTERVAL:
                return moved(left, right, self.query)
            case Constant(Kind.INTEGER | Kind.DECIMAL as kind, value), _ if other in _NUMBERS:
                return Constant(kind if kind is other else Kind.DECIMAL, value + right)
            case _:
                return None

    # -------------------------------------------------------------- comparisons

    def compare(self, operation: Operation, each: Expression, constant: Constant) -> Predicate:
        """``each operation constant``, with functions of a column inverted where that is sound."""
        if constant.kind is Kind.NULL:
            return ALWAYS_FALSE
        if each.name != "input":
            found = self._prefix(operation, each, constant)
            found = found or inverted(self, operation, each, constant)
            return self.opaque(each) if found is None else found
        column_type = each.value.type
        if isinstance(column_type, t.VariantType):
            return self._left(f"{column_type} columns have no bounds")
        predicate = compare_constant(operation, term_of(each), column_type, constant, self.query)
        if predicate is ALWAYS_TRUE:
            kind = constant.kind.name.lower()
            return self._left(f"a {column_type} column is not compared with {kind}")
        return predicate

    def _prefix(
        self, operation: Operation, each: Expression, constant: Constant
    ) -> Predicate | None:
        """The predicate for a prefix of a text column compared with a text, else None."""
        match each.arguments:
            case (column, size) if each.name == "left" and constant.kind in _TEXTS:
                length = size.whole_number or 0
                if length > 0 and column.is_column(t.StringType):
                    return left_of(operation, term_of(column), length, constant.value)
        return None

    def _comparison(self, name: str, left: Expression, right: Expression) -> Predicate:
        other, constant = self.constant(left), self.constant(right)
        if constant is not None and other is not None:
            return _constants(Operation(name), other, constant)
        if constant is not None:
            return self.compare(Operation(name), left, constant)
        if other is not None:
            return self.compare(Operation(FLIPPED[name]), right, other)
        return self.opaque(left, right)

    def _distinct(self, each: Expression, *, distinct: bool) -> Predicate:
        left, right = each.arguments
        constant = self.constant(right)
        if constant is None:
            left, constant = right, self.constant(left)
        if constant is None:
            return self.opaque(*each.arguments)
        if constant.kind is Kind.NULL:
            return self._null(left, is_null=not distinct)
        if not distinct:
            return self.compare(Operation.EQ, left, constant)
        if left.name != "input":
            return self.opaque(left)
        differs = self.compare(Operation.NOT_EQ, left, constant)
        return any_of([Leaf(Operation.IS_NULL, term_of(left)), differs])

    def _between(self, parts: Sequence[Expression], *, negated: bool) -> Predicate:
        constants = [self.constant(each) for each in parts]
        united = unify([each for each in constants if each is not None], self.query)
        if united is None or not _are_alike(parts, constants):
            return self._left("the bounds mix types")
        following = iter(united)
        value, low, high = (
            each if known is None else Expression("constant", (), next(following))
            for each, known in zip(parts, constants, strict=True)
        )
        at_low, at_high = ("<", ">") if negated else (">=", "<=")
        sides = [self._comparison(at_low, value, low), self._comparison(at_high, value, high)]
        return any_of(sides) if negated else all_of(sides)

    # -------------------------------------------------------------- lists

    def _in(self, each: Expression, *, negated: bool) -> Predicate:
        operand, *items = each.arguments
        if items and items[0].name == "list":
            return self._in_list(operand, items[0].value, negated=negated)
        found = [self.constant(item) for item in items]
        constants = [constant for constant in found if constant is not None]
        if len(constants) == len(items) > 0:
            return self._among(operand, constants, negated=negated)
        return self._left("the list holds more than constants")

    def _in_list(self, operand: Expression, values: LiteralList, *, negated: bool) -> Predicate:
        if negated and values.has_null:
            return ALWAYS_FALSE
        known = stored_values(values, operand.value.type) if operand.name == "input" else None
        if known is None:
            return self._among(operand, list(constants_of(values)), negated=negated)
        if not known:
            return Leaf(Operation.NOT_NULL, term_of(operand)) if negated else ALWAYS_FALSE
        return Leaf(Operation.NOT_IN if negated else Operation.IN, term_of(operand), known)

    def _among(
        self, operand: Expression, constants: Sequence[Constant], *, negated: bool
    ) -> Predicate:
        values = [each for each in constants if each.kind is not Kind.NULL]
        if negated and len(values) < len(constants):
            return ALWAYS_FALSE
        united = unify(values, self.query)
        if united is None:
            return self._left("the list mixes types")
        if negated:
            return all_of(self.compare(Operation.NOT_EQ, operand, each) for each in united)
        return any_of(self.compare(Operation.EQ, operand, each) for each in united)

    # -------------------------------------------------------------- other leaves

    def _null(self, operand: Expression, *, is_null: bool) -> Predicate:
        if operand.name != "input":
            return self.opaque(operand)
        if isinstance(operand.value.type, t.UnknownType):
            return ALWAYS_TRUE if is_null else ALWAYS_FALSE
        if isinstance(operand.value.type, t.VariantType):
            return self._left(f"{operand.value.type} columns have no null counts")
        return Leaf(Operation.IS_NULL if is_null else Operation.NOT_NULL, term_of(operand))

    def _of_text(
        self, each: Expression, made: Callable[[Term, str], Predicate | None]
    ) -> Predicate:
        """The predicate that ``made`` returns for a text column and a constant text."""
        column, constant = each.arguments[0], self.constant(each.arguments[1])
        if constant is not None and constant.kind is Kind.NULL:
            return ALWAYS_FALSE
        if not column.is_column(t.StringType) or constant is None or constant.kind not in _TEXTS:
            return self.opaque(each)
        found = made(term_of(column), constant.value)
        return self.opaque(each) if found is None else found

    def _like(self, each: Expression, *, negated: bool) -> Predicate:
        escape: str | None = None
        if len(each.arguments) == 3:
            escape = each.arguments[2].text
            if escape is None or len(escape) > 1:
                return self.opaque(each)
        return self._of_text(
            each, lambda term, text: like(term, text, escape or None, negated=negated)
        )

    def _boolean(self, each: Expression, *, negated: bool) -> Predicate:
        """The predicate of a boolean value: a constant, or a bare boolean column."""
        if each.is_column(t.BooleanType):
            return Leaf(Operation.EQ, term_of(each), not negated)
        constant = self.constant(each)
        if constant is not None and constant.kind is Kind.NULL:
            return ALWAYS_FALSE
        if constant is not None and constant.kind is Kind.BOOLEAN:
            return ALWAYS_TRUE if constant.value != negated else ALWAYS_FALSE
        return self.opaque(each)

    # -------------------------------------------------------------- conditions left to the engine

    def opaque(self, *sides: Expression) -> Predicate:
        """True, because a condition with these operands cannot be a predicate; adds the reason."""
        return self._left(_why_not(sides))

    def _left(self, reason: str) -> Predicate:
        if len(self.reasons) < _MOST_REASONS and reason not in self.reasons:
            self.reasons.append(reason)
        return ALWAYS_TRUE


def term_of(each: Expression) -> Term:
    """The term of an input."""
    return Term(each.value.field_id, each.value.name)


def _literal(kind: str, text: str) -> Constant | None:
    match kind:
        case "NULL":
            return Constant(Kind.NULL, None)
        case "BOOLEAN":
            return Constant(Kind.BOOLEAN, text == "true")
        case "STRING":
            return Constant(Kind.TEXT, text)
    text = text.replace("_", "")
    if text.removeprefix("-").isdigit():
        value = int(text)
        return Constant(Kind.INTEGER, value) if abs(value) < 1 << 127 else None
    if "e" in text.lower():
        return Constant(Kind.DOUBLE, float(text))
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    digits = max(len(number.as_tuple().digits), -exponent if isinstance(exponent, int) else 0)
    return Constant(Kind.DECIMAL, number) if digits <= 38 else None


def _interval(unit: str, amount: Expression) -> Constant | None:
    """``INTERVAL 3 DAY``, which DuckDB's parser turns into a call; None for other arguments."""
    while amount.name in ("cast", "trunc") and amount.arguments:
        amount = amount.arguments[0]
    number = amount.value[1] if amount.name == "literal" else ""
    whole = number.strip().removeprefix("-").isdigit()
    return Constant(Kind.INTERVAL, interval_of(int(number), unit)) if whole else None


def _constants(operation: Operation, left: Constant, right: Constant) -> Predicate:
    if Kind.NULL in (left.kind, right.kind):
        return ALWAYS_FALSE
    kinds = {left.kind, right.kind}
    known = kinds <= {Kind.INTEGER, Kind.DECIMAL} or (
        len(kinds) == 1 and left.kind in (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
    )
    if not (known and left.is_exact and right.is_exact):
        return ALWAYS_TRUE
    return ALWAYS_TRUE if matches(operation, right.value, left.value) else ALWAYS_FALSE


def _are_alike(parts: Sequence[Expression], constants: Sequence[Constant | None]) -> bool:
    """Whether the operands of a BETWEEN other than constants are columns of one type.

    The engine converts all three operands to one type first, so other operands may change the type
    in which constants are compared.
    """
    others = [each for each, known in zip(parts, constants, strict=True) if known is None]
    types = {str(each.value.type) for each in others if each.name == "input"}
    return len(others) <= 1 or (len(types) == 1 and all(each.name == "input" for each in others))


def _why_not(sides: Sequence[Expression]) -> str:
    """The reason, for users, why a condition cannot be an Iceberg expression."""
    if len(sides) > 1 and all(
        each.inputs or any(part.value == OTHER_SCAN for part in each.walk()) for each in sides
    ):
        return "it compares columns with each other"
    nodes = [each for side in sides for each in side.walk()]
    for each in nodes:
        if each.name == "opaque" and each.value:
            return str(each.value)
    functions = [each.name for each in nodes if each.name.isidentifier() and each.arguments]
    for name in functions if any(each.name == "input" for each in nodes) else ():
        if name not in _NO_FUNCTIONS:
            return f"{name}() is not known to keep the order of its argument"
    return "it has no form as an Iceberg expression"


# ------------------------------------------------------------------ implications


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
