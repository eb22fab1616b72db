"""Turn a comparison of a column with a Python value into a predicate on the column's type.

The predicate holds for every row for which SQL says true. It is exactly SQL's comparison wherever
one reading exists; where engines differ (they round one side or the other, or convert by the
session's time zone) it is the union of the readings. A value of a type that cannot be compared
safely leaves ``IS NOT NULL``, which every comparison implies.

How the sides meet, by column type:

* int, long: with int and Decimal exactly. With float exactly below the integers that a FLOAT
  (2^24) or DOUBLE (2^53) holds, above them in a range around the literal, as engines convert the
  column.
* decimal: with int and Decimal exactly; with float in a range of a few units in the last place.
* double: the literal is the nearest DOUBLE; literals of more than 15 digits are a range around it.
* float: the literal is read exactly and as the nearest FLOAT: DuckDB rounds a decimal literal to
  the column's type, but widens the column for a DOUBLE literal, as Spark always does.
* date, timestamps: a date is its midnight. Where one side has a zone and the other has none the
  session's zone decides, so the range covers every zone; callers that know the zone convert first.
* uuid: equality only; engines and writers order UUIDs differently.
* string literals for uuid and whole-number columns are read only in their canonical form; callers
  read those for date, time and timestamp columns first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import and_, or_
from typing import Any, Final
from uuid import UUID

from icesql.iceberg import types as t
from icesql.iceberg.expressions.number_literals import exact_number, floating
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.expressions.time_literals import (
    EpochMicros,
    NanoTimestamp,
    temporal,
    time_micros,
)

__all__ = ["EpochMicros", "NanoTimestamp", "compare"]


def compare(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """The predicate of ``term operation value``; ``column_type`` is the type of the term.

    ``value`` is None (never true in a comparison), bool, int, float, Decimal, str, bytes, date,
    datetime, time, UUID, EpochMicros or NanoTimestamp; an iterable of them for IN and NOT_IN. It
    is ignored for the four unary operations. NaN literals follow engines in which NaN equals
    itself and is the greatest; that a NaN *row* satisfies ``> 1`` there is the caller's to add.
    """
    match operation:
        case Operation.IS_NULL | Operation.NOT_NULL | Operation.IS_NAN | Operation.NOT_NAN:
            return _unary(operation, term, column_type)
        case _ if isinstance(column_type, t.UnknownType):
            return ALWAYS_FALSE  # the column is always NULL
        case Operation.IN:
            equals = (compare(Operation.EQ, term, column_type, each) for each in value)
            return _gather(Operation.IN, Operation.EQ, term, equals)
        case Operation.NOT_IN:
            values = list(value)
            if not values:
                return ALWAYS_TRUE
            different = (compare(Operation.NOT_EQ, term, column_type, each) for each in values)
            return _gather(Operation.NOT_IN, Operation.NOT_EQ, term, different)
        case _ if value is None:
            return ALWAYS_FALSE
        case Operation.STARTS_WITH | Operation.NOT_STARTS_WITH:
            return _prefix(operation, term, column_type, value)
        case _:
            return _ordered(operation, term, column_type, value)


def _unary(operation: Operation, term: Term, column_type: t.IcebergType) -> Predicate:
    if isinstance(column_type, t.UnknownType):
        return ALWAYS_TRUE if operation is Operation.IS_NULL else ALWAYS_FALSE
    if not t.is_floating(column_type):
        if operation is Operation.IS_NAN:
            return ALWAYS_FALSE
        if operation is Operation.NOT_NAN:
            return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term)


def _gather(
    set_operation: Operation, single: Operation, term: Term, parts: Iterable[Predicate]
) -> Predicate:
    """Join the comparisons of a list: those of ``single`` in one set, the others beside it."""
    literals: set[Any] = set()
    others: list[Predicate] = []
    for part in parts:
        if isinstance(part, Leaf) and part.operation is single:
            literals.add(part.literal)
        elif part not in others:
            others.append(part)
    if len(literals) == 1:
        others.insert(0, Leaf(single, term, *literals))
    elif literals:
        others.insert(0, Leaf(set_operation, term, frozenset(literals)))
    if set_operation is Operation.IN:
        return reduce(or_, others, ALWAYS_FALSE)
    not_null = Leaf(Operation.NOT_NULL, term)
    if len(others) > 1 and not_null in others:
        # NOT_IN alone is false for NULL; the weaker conjunct adds nothing.
        others.remove(not_null)
    return reduce(and_, others, ALWAYS_TRUE)


def _prefix(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    if not (isinstance(column_type, t.StringType) and _is_text(value)):
        return Leaf(Operation.NOT_NULL, term)
    if value:
        return Leaf(operation, term, value)
    return Leaf(Operation.NOT_NULL, term) if operation is Operation.STARTS_WITH else ALWAYS_FALSE


def _ordered(operation: Operation, term: Term, column_type: t.IcebergType, value: Any) -> Predicate:
    """LT, LT_EQ, GT, GT_EQ, EQ or NOT_EQ with a value that is not None."""
    leaf = Leaf(operation, term, value)
    match column_type:
        case t.IntegerType() | t.LongType() | t.DecimalType():
            return exact_number(operation, term, column_type, value)
        case t.FloatType() | t.DoubleType():
            return floating(operation, term, column_type, value)
        case t.DateType() | t.TimestampType() | t.TimestamptzType():
            return temporal(operation, term, column_type, value)
        case t.TimestampNanoType() | t.TimestamptzNanoType():
            return temporal(operation, term, column_type, value)
        case t.TimeType():
            micros = time_micros(value)
            if micros is not None:
                return Leaf(operation, term, micros)
        case t.BooleanType() if isinstance(value, bool):
            return leaf
        case t.StringType() if _is_text(value):
            return leaf
        case t.BinaryType() if isinstance(value, bytes | bytearray | memoryview):
            return Leaf(operation, term, bytes(value))
        case t.FixedType() if isinstance(value, bytes | bytearray | memoryview):
            return _fixed(operation, term, column_type.length, bytes(value))
        case t.UUIDType():
            return _uuid(operation, term, value)
    return Leaf(Operation.NOT_NULL, term)


def _is_text(value: Any) -> bool:
    """Whether ``value`` is text that UTF-8 can hold (no lone surrogates)."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fixed(operation: Operation, term: Term, length: int, value: bytes) -> Predicate:
    if len(value) != length:
        if operation is Operation.EQ:
            return ALWAYS_FALSE
        if operation is Operation.NOT_EQ:
            return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term, value)


def _uuid(operation: Operation, term: Term, value: Any) -> Predicate:
    literal = _uuid_bytes(value)
    if literal is None or operation not in (Operation.EQ, Operation.NOT_EQ):
        # Java orders UUIDs as signed numbers, DuckDB and Parquet as unsigned: ranges say nothing.
        return Leaf(Operation.NOT_NULL, term)
    return Leaf(operation, term, literal)


def _uuid_bytes(value: Any) -> bytes | None:
    match value:
        case UUID():
            return value.bytes
        case bytes() if len(value) == 16:
            return value
        case str() if re.fullmatch(_UUID, value):
            return UUID(value).bytes
        case _:
            return None


_UUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
