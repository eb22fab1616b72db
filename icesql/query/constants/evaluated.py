"""The values of constant expressions, as the engine computes them, and casts of constants."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from icesql.iceberg import types as t
from icesql.query.constants.constant import DAY, EXACT, Constant, Interval, Kind, NotConstant
from icesql.query.constants.times import (
    interval_of_text,
    shift,
    time_of_day,
    timestamp_of,
    to_instant,
    to_local,
)

if TYPE_CHECKING:
    from icesql.context import QueryContext


# ------------------------------------------------------------------ casts
# DuckDB's results; None where the result is not certain.


INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT",
                             "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"})  # fmt: skip
_DECIMAL: Final = r"(?a)[+-]?(\d+(\.\d+)?|\.\d+)"
_FLOATING: Final = r"(?ai)[+-]?(\d{1,15}(\.\d{1,15})?|nan|inf|infinity)"


def cast(constant: Constant, to: str, query: QueryContext) -> Constant | None:
    """The constant as a value of another SQL type, None where the result is not certain."""
    is_text = constant.kind in (Kind.TEXT, Kind.STRING)
    match to:
        case _ if constant.kind is Kind.NULL:
            return constant
        case "DATE":
            return to_date(constant, query)
        case "TIMESTAMP":
            return to_timestamp(constant, query)
        case "TIMESTAMPTZ":
            return to_timestamptz(constant, query)
        case "TIME" if is_text:
            clock = time_of_day(constant.value)
            return None if clock is None else Constant(Kind.TIME, clock)
        case _ if to in INTEGERS:
            return _to_integer(constant)
        case "FLOAT" | "DOUBLE":
            return _to_floating(constant, Kind.FLOAT if to == "FLOAT" else Kind.DOUBLE)
        case "VARCHAR" if is_text:
            return Constant(Kind.STRING, constant.value)
        case "UUID" if is_text:
            return Constant(Kind.UUID, UUID(constant.value)) if len(constant.value) == 36 else None
        case "BLOB" if is_text:
            return _to_blob(constant.value)
        case "BOOLEAN" if constant.kind is Kind.BOOLEAN:
            return constant
        case _ if to.startswith("DECIMAL"):
            return _to_decimal(constant, to)
        case _:
            return None


def _to_integer(constant: Constant) -> Constant | None:
    # The engine raises the error for out of range; values that need rounding are not folded.
    match constant.kind:
        case Kind.INTEGER:
            return constant
        case Kind.DECIMAL if constant.value == int(constant.value):
            return Constant(Kind.INTEGER, int(constant.value))
        case Kind.TEXT | Kind.STRING if re.fullmatch(r"[+-]?[0-9]{1,39}", constant.value):
            return Constant(Kind.INTEGER, int(constant.value))
        case _:
            return None


def _to_decimal(constant: Constant, to: str) -> Constant | None:
    sizes = [int(each) for each in re.findall(r"[0-9]+", to)]
    precision, scale = (*sizes, 0)[:2] if sizes else (18, 3)
    match constant.kind:
        case Kind.INTEGER | Kind.DECIMAL:
            value = Decimal(constant.value)
        case Kind.TEXT | Kind.STRING if re.fullmatch(_DECIMAL, constant.value):
            value = Decimal(constant.value)
        case _:
            return None
    scaled = EXACT.scaleb(value, scale)
    if scaled != int(scaled) or scaled.copy_abs() >= 10**precision:
        return None
    return Constant(Kind.DECIMAL, value)


def _to_floating(constant: Constant, kind: Kind) -> Constant | None:
    match constant.kind:
        case Kind.INTEGER if abs(constant.value) <= 2**53:
            value = float(constant.value)
        case Kind.FLOAT | Kind.DOUBLE:
            value = constant.value
        case Kind.DECIMAL if len(constant.value.as_tuple().digits) <= 15:
            if constant.value and constant.value.adjusted() < -20:
                return None
            value = float(constant.value)
        case Kind.TEXT | Kind.STRING:
            if not re.fullmatch(_FLOATING, constant.value):
                return None
            value = float(constant.value)
        case _:
            return None
    if kind is Kind.FLOAT:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return Constant(kind, value)


def _to_blob(text: str) -> Constant | None:
    pieces = re.findall(r"\\x([0-9a-fA-F]{2})|([\x20-\x5b\x5d-\x7e])|(.)", text, re.DOTALL)
    if any(other for _, _, other in pieces):
        return None
    return Constant(
        Kind.BLOB, b"".join(bytes.fromhex(code) or plain.encode() for code, plain, _ in pieces)
    )


def unify(constants: Sequence[Constant], query: QueryContext) -> list[Constant] | None:
    """Constants of one IN list or BETWEEN, which DuckDB converts to one type first.

    None if the common type is not known. NULLs are unchanged.
    """
    kinds = {each.kind for each in constants} - {Kind.NULL}
    if len(kinds) <= 1 or kinds in ({Kind.INTEGER, Kind.DECIMAL}, {Kind.TEXT, Kind.STRING}):
        return list(constants)
    if Kind.TIMESTAMPTZ in kinds:
        found = [to_timestamptz(each, query) for each in constants]
    elif kinds <= {Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}:
        return list(constants)
    elif kinds <= {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}:
        found = [
            each if each.kind is Kind.NULL else _to_floating(each, Kind.DOUBLE)
            for each in constants
        ]
    else:
        return None
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def to_date(constant: Constant, query: QueryContext) -> Constant | None:
    """CAST(… AS DATE); an instant becomes its day in the session's zone."""
    match constant.kind:
        case Kind.DATE | Kind.NULL:
            return constant
        case Kind.TEXT | Kind.STRING:
            day = timestamp_of(constant.value.strip(" "), t.DATE)
            return None if day is None else Constant(Kind.DATE, day.epoch_ns // (DAY * 1000))
        case Kind.TIMESTAMP:
            return constant.converted(Kind.DATE, lambda each: each // DAY)
        case Kind.TIMESTAMPTZ:
            local = to_local(constant, query)
            return to_date(local, query)
        case _:
            return None


def to_timestamp(constant: Constant, query: QueryContext) -> Constant | None:
    """CAST(… AS TIMESTAMP); an instant becomes its wall clock in the session's zone."""
    match constant.kind:
        case Kind.TIMESTAMP | Kind.NULL:
            return constant
        case Kind.DATE:
            return constant.converted(Kind.TIMESTAMP, lambda each: each * DAY)
        case Kind.TIMESTAMPTZ:
            return to_local(constant, query)
        case Kind.TEXT | Kind.STRING:
            read = _read(constant.value)
            return read if read is not None and read.kind is Kind.TIMESTAMP else None
        case _:
            return None


def to_timestamptz(constant: Constant, query: QueryContext) -> Constant | None:
    """CAST(… AS TIMESTAMPTZ); a time without zone is read in the session's zone."""
    match constant.kind:
        case Kind.TIMESTAMPTZ | Kind.NULL:
            return constant
        case Kind.DATE | Kind.TIMESTAMP:
            local = to_timestamp(constant, query)
            return None if local is None else to_instant(local, query)
        case Kind.TEXT | Kind.STRING:
            read = _read(constant.value)
            return to_timestamptz(read, query) if read is not None else None
        case _:
            return None


def _read(text: str) -> Constant | None:
    """A text as an instant if it names a zone, else as a wall clock."""
    found = timestamp_of(text.strip(" "), t.TIMESTAMP)
    if found is None:
        return None
    return Constant(Kind.TIMESTAMPTZ if found.zoned else Kind.TIMESTAMP, found.epoch_ns // 1000)


def moved(moment: Constant, step: Interval, query: QueryContext) -> Constant:
    """TIMESTAMP or TIMESTAMPTZ plus interval. Raises OverflowError and ValueError."""
    if moment.kind is Kind.TIMESTAMP:
        return moment.converted(Kind.TIMESTAMP, lambda each: shift(each, step))
    if step.months or step.days:
        # Months and days are steps on the calendar of the session's zone.
        calendar = Interval(step.months, step.days)
        moment = to_instant(moved(to_local(moment, query), calendar, query), query)
    return moment.converted(Kind.TIMESTAMPTZ, lambda each: each + step.micros)


# ------------------------------------------------------------------ values


K = TypeVar("K")


def evaluated(wanted: Mapping[K, str], query: QueryContext) -> dict[K, Constant]:
    """Evaluate constant SQL expressions, given by key, in one query; none without an engine.

    Expressions for which the engine raises and values without a ``Constant`` are left out.
    """
    if not wanted or query.evaluate is None:
        return {}
    selected = ", ".join(f"typeof({sql}), CAST({sql} AS VARCHAR)" for sql in wanted.values())
    rows = query.evaluate(f"SELECT {selected}", [], query)
    if not rows:
        # One of them fails; the others may still have values.
        each_alone = [{each: sql} for each, sql in wanted.items()] if len(wanted) > 1 else []
        return {k: v for one in each_alone for k, v in evaluated(one, query).items()}
    return {
        each: constant
        for each, kind, text in zip(wanted, rows[0][::2], rows[0][1::2], strict=True)
        if (constant := _constant(kind, text, query)) is not None
    }


def _constant(kind: str, text: str | None, query: QueryContext) -> Constant | None:
    """The value of ``text`` as the type named ``kind``, None where that is not certain."""
    if text is None:
        return Constant(Kind.NULL, None)
    try:
        match kind:
            case "BOOLEAN":
                return Constant(Kind.BOOLEAN, text == "true")
            case "INTERVAL":
                return Constant(Kind.INTERVAL, interval_of_text(text))
            case "DOUBLE":
                return Constant(Kind.DOUBLE, float(text))
            case "TIMESTAMP WITH TIME ZONE":
                kind = "TIMESTAMPTZ"
        return cast(Constant(Kind.TEXT, text), kind, query)
    except (ValueError, OverflowError, ArithmeticError, NotConstant):
        return None
