"""Arguments of a CALL, checked against the parameters of its procedure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, Final

from icesql.config import property_text
from icesql.errors import ProgrammingError, nearest
from icesql.modify.procedures.procedure import Parameter, Procedure, shown_kind
from icesql.sql.table_name import name_parts
from icesql.sql.writes.procedures.call import CallArgument, Duration
from icesql.sql.writes.statements import TableName

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def bind(
    procedure: Procedure, given: Sequence[CallArgument], *, zone: tzinfo, now_ms: int
) -> tuple[dict[str, Any], dict[str, int | None]]:
    """The value of each parameter, None for missing arguments, and the offsets of the given ones.

    See ``Parameter`` for the kinds. A timestamp is in milliseconds since 1970; a map is a dict of
    strings, an array a tuple. ``zone`` applies to timestamps without a zone.
    Arguments by position come before those by name. NULL counts as missing. Raises
    ProgrammingError, with the signature, for an unknown, repeated, missing or invalid argument.
    """
    parameters = {each.name: each for each in procedure.parameters}
    values: dict[str, Any] = {}
    offsets: dict[str, int | None] = {}
    named = False
    for place, each in enumerate(given):
        name = each.name.lower()
        if not name:
            if named:
                problem = "an argument by position follows one by name"
                raise unfit(procedure, problem, each.offset)
            if place >= len(procedure.parameters):
                problem = f"it takes {len(parameters)} arguments, not {len(given)}"
                raise unfit(procedure, problem, each.offset)
            name = procedure.parameters[place].name
        else:
            named = True
        if name not in parameters:
            hint = nearest(name, parameters)
            raise unfit(procedure, f"there is no parameter {each.name}{hint}", each.offset)
        if name in values:
            raise unfit(procedure, f"{name} is given twice", each.offset)
        offsets[name] = each.offset
        values[name] = None
        if each.value is not None:
            values[name] = _fit(procedure, parameters[name], each, zone, now_ms)
    for parameter in procedure.parameters:
        if parameter.required and values.get(parameter.name) is None:
            raise unfit(procedure, f"{parameter.name} is missing", offsets.get(parameter.name))
        values.setdefault(parameter.name, None)
    return values, offsets


def unfit(procedure: Procedure, problem: str, offset: int | None) -> ProgrammingError:
    """The error for arguments that the procedure cannot take."""
    hint = f"; the signature is {procedure.signature}"
    return hinted(f"CALL {procedure.name}: {problem}", hint, offset)


def hinted(problem: str, hint: str, offset: int | None) -> ProgrammingError:
    """An error at an offset of the text, with a hint."""
    error = ProgrammingError(f"{problem}{hint}")
    error.sql_offset, error.hint_length = offset, len(hint)
    return error


def _fit(
    procedure: Procedure, parameter: Parameter, given: CallArgument, zone: tzinfo, now_ms: int
) -> Any:
    """The value converted to the parameter's kind."""
    value = given.value
    try:
        match parameter.kind:
            case "timestamp":
                return _instant(value, zone, now_ms)
            case "table" | "place" if isinstance(value, TableName):
                return value
            case "table" | "place" as kind if kind == "table" or "/" not in _text(value):
                parts = name_parts(_text(value))
                if not all(parts):
                    problem = f"{parameter.name} is {value!r}, which is no name of a table"
                    raise unfit(procedure, problem, given.offset)
                return TableName(parts, given.offset)
            case "snapshot" if not isinstance(value, str):
                return str(_long(value))
            case kind:
                read: Callable[[Any], Any] = _READERS.get(kind, _text)
                return read(value)
    except _Unfit:
        kind, shown = shown_kind(parameter.kind), repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
        problem = f"{parameter.name} is {shown}, and takes {_ARTICLES.get(kind, 'a')} {kind}"
        raise unfit(procedure, problem, given.offset) from None


_ARTICLES: Final = {"int": "an", "array<string>": "an", "array<bigint>": "an"}


class _Unfit(Exception):
    """The value has a wrong kind or is out of range."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit
    return value


def _whole(value: Any, most: int) -> int:
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Unfit
    if not -most - 1 <= value <= most:
        raise _Unfit
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unfit
    return value


def _array(item: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Unfit
    return tuple(map(item, value))


def _map(value: Any) -> dict[str, str]:
    """Keys have to be strings; values may also be numbers and booleans."""
    if not isinstance(value, dict):
        raise _Unfit
    found = {}
    for key, each in value.items():
        if not isinstance(key, str) or not isinstance(each, str | int | Decimal | float | bool):
            raise _Unfit
        found[key] = property_text(each)
    return found


_long: Final = partial(_whole, most=2**63 - 1)
# By the kind of a parameter; other kinds are texts.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": partial(_whole, most=2**31 - 1),
    "bigint": _long,
    "boolean": _boolean,
    "array<string>": partial(_array, _text),
    "array<bigint>": partial(_array, _long),
    "map<string, string>": _map,
}


def _instant(value: Any, zone: tzinfo, now_ms: int) -> int:
    """Convert a time, a date, or either as a string to milliseconds since 1970."""
    if isinstance(value, Duration):
        return now_ms - value.milliseconds
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _Unfit from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _Unfit
    if value.tzinfo is None:
        value = value.replace(tzinfo=zone)
    # astimezone() fails near the ends of datetime's range.
    return int((value - _EPOCH) // timedelta(milliseconds=1))
