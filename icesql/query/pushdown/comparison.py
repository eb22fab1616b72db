"""Compare a column with a constant as DuckDB does, as a predicate that the comparison implies.

``iceberg.expressions.literals`` adapts values to the column's type; this file adds DuckDB's
rules: which types are comparable, the session's time zone, and that NaN is the greatest number.
It also compares the first characters of a text, and functions of time.

>>> implied("i > 2.5 AND price <> 1.005")
i >= 3 AND price IS NOT NULL
>>> implied("at >= TIMESTAMP '2024-07-01 00:00:00'", zone="Europe/Berlin")
at >= 2024-06-30 22:00:00+00:00
>>> implied("x > 1")
x > 1.0 OR x IS NAN
>>> implied("date(ts) = DATE '2024-02-29' AND ts + INTERVAL 1 HOUR < TIMESTAMP '2024-03-01'")
ts >= 2024-02-29 00:00:00 AND ts < 2024-03-01 00:00:00 AND ts < 2024-02-29 23:00:00
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.expressions.literals import NanoTimestamp, compare
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Or,
    Predicate,
    Term,
)
from icesql.query.constants.constant import DAY, HOUR, Constant, Interval, Kind
from icesql.query.constants.evaluated import (
    INTEGERS,
    cast,
    moved,
    to_date,
    to_timestamp,
    to_timestamptz,
)
from icesql.query.constants.times import (
    FINER_THAN_DAY,
    bucket_start,
    epoch_days,
    next_bucket,
    offset_is_steady,
    read_for,
    to_local,
    unit_name,
    zone_slack,
)
from icesql.query.pushdown.computed.expression import Expression

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.pushdown.predicate import Translator


_NEVER_NAN: Final = (
    Operation.LT, Operation.LT_EQ, Operation.EQ, Operation.IN, Operation.NOT_NAN,
)  # fmt: skip
# Each file evaluates each part: a condition of more parts costs more than it saves.
_MOST_PARTS: Final = 2_000
_NUMBERS: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)
_TIMES: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
ZONED: Final = (t.TimestamptzType, t.TimestamptzNanoType)
_COMPARABLE: Final[dict[type[t.IcebergType], tuple[Kind, ...]]] = {
    t.BooleanType: (Kind.BOOLEAN,),
    t.IntegerType: (*_NUMBERS, Kind.TEXT),
    t.LongType: (*_NUMBERS, Kind.TEXT),
    t.DecimalType: _NUMBERS,
    t.FloatType: _NUMBERS,
    t.DoubleType: _NUMBERS,
    t.StringType: (Kind.TEXT, Kind.STRING),
    **dict.fromkeys(
        (t.DateType, t.TimestampType, t.TimestampNanoType, *ZONED), (*_TIMES, Kind.TEXT)
    ),
    t.TimeType: (Kind.TIME, Kind.TEXT),
    t.UUIDType: (Kind.UUID, Kind.TEXT),
    t.BinaryType: (Kind.BLOB,),
    t.FixedType: (Kind.BLOB,),
}


def compare_constant(
    operation: Operation,
    term: Term,
    column_type: t.IcebergType,
    constant: Constant,
    query: QueryContext,
) -> Predicate:
    """``term operation constant``; ALWAYS_TRUE if the two types are not known to be comparable.

    ``operation`` is one of LT, LT_EQ, GT, GT_EQ, EQ and NOT_EQ.
    """
    if constant.kind is Kind.NULL or isinstance(column_type, t.UnknownType):
        return ALWAYS_FALSE
    if constant.kind not in _COMPARABLE.get(type(column_type), ()):
        return ALWAYS_TRUE
    if isinstance(column_type, t.BooleanType) and operation not in (Operation.EQ, Operation.NOT_EQ):
        return ALWAYS_TRUE
    adapted = _in_zone_of(column_type, constant, query)
    if adapted is None:
        return ALWAYS_TRUE
    return _compare_range(operation, term, column_type, adapted)


def _in_zone_of(
    column_type: t.IcebergType, constant: Constant, query: QueryContext
) -> Constant | None:
    """The constant converted to the column's kind of time, with or without zone."""
    try:
        if isinstance(column_type, ZONED):
            # Some engines truncate text finer than µs, others do not.
            return to_timestamptz(constant, query)
        if constant.kind is not Kind.TIMESTAMPTZ:
            return constant
        local = to_local(constant, query)
        # DuckDB converts the column; near a change of the offset wall clocks are not in the order
        # of their instants.
        return local if offset_is_steady(constant, query) else local.widened(DAY)
    except (OverflowError, ValueError):
        return None


def _compare_range(
    operation: Operation, term: Term, column_type: t.IcebergType, constant: Constant
) -> Predicate:
    if constant.is_exact:
        return _compare(
            operation, term, column_type, read_for(column_type, _python(constant, constant.value))
        )
    low, high = (_python(constant, each) for each in (constant.value, constant.greatest))
    match operation:
        case Operation.LT | Operation.LT_EQ:
            return _compare(operation, term, column_type, high)
        case Operation.GT | Operation.GT_EQ:
            return _compare(operation, term, column_type, low)
        case Operation.EQ:
            return _compare(Operation.GT_EQ, term, column_type, low) & _compare(
                Operation.LT_EQ, term, column_type, high
            )
        case _:
            return Leaf(Operation.NOT_NULL, term)


def _python(constant: Constant, value: Any) -> Any:
    match constant.kind:
        case Kind.DATE:
            return NanoTimestamp(value * DAY * 1000, zoned=False)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return NanoTimestamp(value * 1000, zoned=constant.kind is Kind.TIMESTAMPTZ)
        case _:
            return value


def _compare(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    predicate = compare(operation, term, column_type, value)
    if not t.is_floating(column_type) or operation not in (Operation.GT, Operation.GT_EQ):
        return predicate
    if operation is Operation.GT and value != value:
        return predicate
    # DuckDB and Spark order NaN above all numbers.
    return predicate | Leaf(Operation.IS_NAN, term)


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """The OR of ``parts``, with equalities on one column merged into an IN.

    >>> implied("i = 1 OR i IN (2, 3)")
    i IN (1, 2, 3)
    """
    sets, others = _gathered(parts, Operation.EQ, Operation.IN)
    if len(others) > _MOST_PARTS:
        return ALWAYS_TRUE
    return _balanced([*sets, *others], conjunction=False)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The AND of ``parts``, with inequalities on one column merged into a NOT IN.

    >>> implied("i <> 1 AND i <> 2")
    i NOT IN (1, 2)
    """
    sets, others = _gathered(parts, Operation.NOT_EQ, Operation.NOT_IN)
    if any(isinstance(each, Or) for each in others):
        others = _without_nan(others)
    # Dropped conditions let more rows pass, which the engine filters.
    return _balanced([*others[:_MOST_PARTS], *sets], conjunction=True)


def _without_nan(parts: list[Predicate]) -> list[Predicate]:
    """Parts of an AND without their alternative NaN if another part is false for NaN.

    >>> implied("x >= 1 AND x <= 2")
    x >= 1.0 AND x <= 2.0
    """
    excluded = {
        each.term for each in parts if isinstance(each, Leaf) and each.operation in _NEVER_NAN
    }

    def kept(part: Predicate) -> Predicate:
        match part:
            case Or(left, Leaf(Operation.IS_NAN, term)) if term in excluded:
                return left
            case _:
                return part

    return [kept(each) for each in parts] if excluded else parts


def _gathered(
    parts: Iterable[Predicate], single: Operation, several: Operation
) -> tuple[list[Predicate], list[Predicate]]:
    """The leaves of both operations merged into one per column; each other part once."""
    values: dict[Term, set[Any]] = {}
    others: dict[Predicate, None] = {}
    for part in parts:
        if isinstance(part, Leaf) and part.operation is single:
            values.setdefault(part.term, set()).add(part.literal)
        elif isinstance(part, Leaf) and part.operation is several:
            values.setdefault(part.term, set()).update(part.literal)
        else:
            others[part] = None
    sets: list[Predicate] = [
        Leaf(single, term, *literals)
        if len(literals) == 1
        else Leaf(several, term, frozenset(literals))
        for term, literals in values.items()
    ]
    return sets, list(others)


def _balanced(parts: list[Predicate], *, conjunction: bool) -> Predicate:
    """Combine parts as a balanced tree: a thousand parts give a depth of ten."""
    if not parts:
        return ALWAYS_TRUE if conjunction else ALWAYS_FALSE
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left = _balanced(parts[:half], conjunction=conjunction)
    right = _balanced(parts[half:], conjunction=conjunction)
    return left & right if conjunction else left | right


# ------------------------------------------------------------------ LIKE


def like(term: Term, pattern: str, escape: str | None, *, negated: bool) -> Predicate | None:
    """The predicate of ``term [NOT] LIKE pattern [ESCAPE escape]``; None for an invalid pattern.

    >>> implied("name LIKE 'ab%' AND name LIKE 'a%z' AND name LIKE 'abc'")
    name STARTS WITH 'ab' AND name STARTS WITH 'a' AND name = 'abc'
    >>> implied("name NOT LIKE 'ab%'")
    name NOT STARTS WITH 'ab'
    >>> implied("name NOT LIKE 'a%z'")
    name IS NOT NULL
    """
    read = _read_pattern(pattern, escape)
    if read is None:
        return None
    prefix, rest = read
    if not rest:
        return Leaf(Operation.NOT_EQ if negated else Operation.EQ, term, prefix)
    if set(rest) == {"%"}:
        return starts_with(term, prefix, negated=negated)
    if prefix and not negated:
        return Leaf(Operation.STARTS_WITH, term, prefix)
    return Leaf(Operation.NOT_NULL, term)


def starts_with(term: Term, prefix: str, *, negated: bool) -> Predicate:
    """``[NOT] starts_with(term, prefix)``; every text starts with the empty text."""
    if not prefix:
        return ALWAYS_FALSE if negated else Leaf(Operation.NOT_NULL, term)
    return Leaf(Operation.NOT_STARTS_WITH if negated else Operation.STARTS_WITH, term, prefix)


def left_of(operation: Operation, term: Term, length: int, text: str) -> Predicate:
    """The predicate of ``left(term, length) operation text``; ``length`` is at least 1.

    >>> implied("left(name, 2) = 'ab'")
    name STARTS WITH 'ab'
    >>> implied("left(name, 3) <= 'abc'")
    name < 'abc' OR name STARTS WITH 'abc'
    """
    if not text.isascii() or not text:
        # Engines differ in their definition of a character.
        if text and operation is Operation.EQ:
            return Leaf(Operation.STARTS_WITH, term, text)
        return Leaf(Operation.NOT_NULL, term)
    match operation:
        case Operation.EQ if len(text) > length:
            return ALWAYS_FALSE
        case Operation.EQ if len(text) == length:
            return Leaf(Operation.STARTS_WITH, term, text)
        case Operation.EQ:
            return Leaf(Operation.EQ, term, text)
        case Operation.NOT_EQ if len(text) == length:
            return Leaf(Operation.NOT_STARTS_WITH, term, text)
        case Operation.GT | Operation.GT_EQ:
            return Leaf(operation, term, text)
        case Operation.LT if len(text) <= length:
            return Leaf(Operation.LT, term, text)
        case Operation.LT_EQ if len(text) <= length:
            below = Leaf(Operation.LT, term, text)
            return any_of([below, Leaf(Operation.STARTS_WITH, term, text)])
        case _:
            return Leaf(Operation.NOT_NULL, term)


def _read_pattern(pattern: str, escape: str | None) -> tuple[str, str] | None:
    """The literal prefix of a LIKE pattern, and the rest from its first wildcard on.

    None if the pattern ends with the escape character.
    """
    prefix: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern):
                return None
            prefix.append(pattern[position])
        elif character in "%_":
            return "".join(prefix), pattern[position:]
        else:
            prefix.append(character)
        position += 1
    return "".join(prefix), ""


# ------------------------------------------------------------------ functions of time
# The predicate is wider where clocks change.


_TIME_TYPES: Final = (t.DateType, t.TimestampType, t.TimestampNanoType, *ZONED)
_WHOLE, _EXACT = (t.IntegerType, t.LongType), (Kind.INTEGER, Kind.DECIMAL)
# By the type of a cast: columns whose order it keeps, and constants compared with them.
_CASTS: Final[dict[str, Any]] = {
    **dict.fromkeys(INTEGERS, (_WHOLE, _EXACT)),
    "DOUBLE": ((*_WHOLE, t.DecimalType, t.FloatType), (Kind.DOUBLE,)),
    "TIMESTAMP": ((t.DateType, *ZONED), (Kind.DATE, Kind.TIMESTAMP)),
    "TIMESTAMPTZ": ((t.DateType, t.TimestampType), (Kind.TIMESTAMPTZ,)),
    "VARCHAR": ((t.StringType,), (Kind.TEXT, Kind.STRING)),
}


def inverted(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    """The predicate implied by ``each operation constant``, if it is not NULL; None without one."""
    try:
        return _INVERSES[each.name](to, operation, each, constant)
    except (OverflowError, ValueError, ArithmeticError, LookupError):
        return None


def _cast(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    inner, name = each.arguments[0], each.value or "TIMESTAMPTZ"
    if name == "DATE":
        return _day(to, operation, inner, constant)
    types, kinds = _CASTS.get(name, ((), ()))
    if constant.kind is Kind.TEXT or name in ("DOUBLE", "TIMESTAMPTZ"):
        constant = cast(constant, name, to.query) or constant
    fits = inner.is_column(*types) and constant.kind in kinds
    return to.compare(operation, inner, constant) if fits else None


def _day(to: Translator, operation: Operation, inner: Expression, constant: Constant) -> Any:
    if constant.kind is Kind.TEXT:
        constant = to_date(constant, to.query) or constant
    if inner.is_column(t.DateType):
        return to.compare(operation, inner, constant)
    zoned = constant.kind is Kind.TIMESTAMPTZ
    clock = to_timestamp(constant, to.query)
    if clock is None or constant.kind is Kind.TEXT or not inner.is_column(*_TIME_TYPES):
        return None
    clock = clock.widened(zone_slack(to.query, DAY) if zoned else 0)
    # A day is compared as its midnight.
    start, end = clock.value // DAY * DAY, (clock.greatest // DAY + 1) * DAY
    has = clock.value == start if clock.is_exact else None
    return _buckets(to, operation, inner, start, end, has)


def _year(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    *unit, inner = each.arguments
    if unit and unit_name(unit[0].text or "") != "year":
        return None
    is_whole = constant.kind in _EXACT and constant.value == int(constant.value)
    if not is_whole or not 1 <= constant.value <= 9998 or not inner.is_column(*_TIME_TYPES):
        return None
    start = epoch_days(date(int(constant.value), 1, 1)) * DAY
    return _buckets(to, operation, inner, start, next_bucket(start, "year"), True)


def _truncated(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    unit, inner = unit_name(each.arguments[0].text or ""), each.arguments[1]
    zoned = inner.name == "first_instant" or inner.value == "TIMESTAMPTZ"
    inner = inner.arguments[0] if zoned else inner
    # DuckDB compares only the day of a date.
    is_fine = unit in FINER_THAN_DAY
    if not inner.is_column(*_TIME_TYPES) or (inner.is_column(t.DateType) and is_fine):
        return None
    zoned = zoned or inner.is_column(*ZONED)
    moment = _beside(to, constant, zoned)
    if moment is None:
        return None
    clock = to_local(moment, to.query) if zoned else moment
    # Truncation uses the session's clock, the comparison instants.
    slack = zone_slack(to.query, 3 * HOUR if clock.is_exact else DAY) if zoned else 0
    start = bucket_start(clock.value - slack, unit)
    last = bucket_start(clock.greatest + slack, unit)
    if start is None or last is None:
        return None
    has, end = None if slack else clock.value == start, next_bucket(last, unit)
    return _buckets(to, operation, inner, start - slack, end + slack, has)


def _beside(to: Translator, constant: Constant, zoned: bool) -> Constant | None:
    """The constant as the kind of time of a column; None where the zone would decide."""
    if constant.kind is Kind.TIMESTAMPTZ and not zoned:
        return None
    return (to_timestamptz if zoned else to_timestamp)(constant, to.query)


def _buckets(
    to: Translator, op: Operation, inner: Expression, start: int, end: int, has: bool | None
) -> Predicate | None:
    """``has``: the constant is the bucket from start to end; None if it may be another one."""
    ends = Constant(Kind.TIMESTAMP, start), Constant(Kind.TIMESTAMP, end)
    below = [to.compare(Operation.LT, inner, each) for each in ends]
    above = [to.compare(Operation.GT_EQ, inner, each) for each in ends]
    if op is Operation.EQ:
        return ALWAYS_FALSE if has is False else all_of([above[0], below[1]])
    if op is Operation.NOT_EQ:
        return None if has is None else any_of([below[not has], above[has]])
    if op in (Operation.LT, Operation.LT_EQ):
        return below[op is Operation.LT_EQ or not has]
    return above[has is not None if op is Operation.GT else has is False]


def _moved(to: Translator, operation: Operation, each: Expression, constant: Constant) -> Any:
    inner, known = each.arguments[0], to.constant(each.arguments[1])
    if known is None and each.name == "+":
        inner, known = each.arguments[1], to.constant(inner)
    if known is None or known.kind is not Kind.INTERVAL or not inner.is_column(*_TIME_TYPES):
        return None
    step: Interval = known.value if each.name.startswith(("-", "instant_moved_b")) else -known.value
    zoned = inner.is_column(*ZONED)
    target = _beside(to, constant, zoned)
    if target is None:
        return None
    # The last days of a month all move to the last day of a shorter month.
    slack = 4 * DAY if step.months else 0
    slack += zone_slack(to.query, DAY) if zoned and (step.months or step.days) else 0
    target = moved(target, Interval(0, 0, step.micros), to.query)
    target = moved(target, Interval(step.months, step.days), to.query)
    return to.compare(operation, inner, target.widened(slack))


_INVERSES: Final = {
    **dict.fromkeys(("cast", "try_cast", "first_instant"), _cast),
    **dict.fromkeys(("year", "date_part", "datepart"), _year),
    **dict.fromkeys(("date_trunc", "datetrunc", "instant_truncated"), _truncated),
    **dict.fromkeys(("+", "-", "instant_moved", "instant_moved_back"), _moved),
}
