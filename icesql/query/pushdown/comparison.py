"""Compare a column with a constant as DuckDB does, as a predicate that the comparison implies.

``iceberg.expressions.literals`` adapts values to the column's type; this file adds DuckDB's
rules: which types are comparable, the session's time zone, and that NaN is the greatest number.

>>> implied("i > 2.5 AND price <> 1.005")
i >= 3 AND price IS NOT NULL
>>> implied("at >= TIMESTAMP '2024-07-01 00:00:00'", zone="Europe/Berlin")
at >= 2024-06-30 22:00:00+00:00
>>> implied("x > 1")
x > 1.0 OR x IS NAN
"""

from __future__ import annotations

from collections.abc import Iterable
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
from icesql.query.constants.canonical_times import read_for
from icesql.query.constants.casts import to_timestamptz
from icesql.query.constants.constant import DAY, Constant, Kind
from icesql.query.constants.session_zone import offset_is_steady, to_local

if TYPE_CHECKING:
    from icesql.context import QueryContext

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
