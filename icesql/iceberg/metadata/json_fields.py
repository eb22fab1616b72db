"""Typed access to parsed JSON: a value of another kind than the format's raises Malformed.

Whole numbers are bounded where they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from icesql.errors import ProgrammingError

Parsed = TypeVar("Parsed")
_INT_LIMIT: Final = {32: 1 << 31, 64: 1 << 63}


_EXACT_FLOATS: Final = 1 << 53
_INTEGER: Final = re.compile(r"-?[0-9]{1,40}", re.ASCII)
# The first days of the years 2 and 9999 in milliseconds: in any zone Python can represent them.
_TIMES: Final = (-62_104_060_800_000, 253_370_764_800_000)
# How writers spell "no snapshot": -1, also as a number without sign.
_NO_ID: Final = (-1, (1 << 64) - 1)


class Malformed(ValueError):
    """JSON that does not have the promised shape; the caller adds the path of the file."""


def load_json(data: bytes | str) -> Any:
    """The parsed value. Raises Malformed, with the byte offset as ``offset`` when it is known."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass  # json reads more than the standard, and reports the place of an error
    try:
        return json.loads(data)
    except RecursionError as error:
        raise Malformed("JSON nested too deeply") from error
    except UnicodeDecodeError as error:
        raise _at(f"not UTF-8: {error.reason}", error.start) from error
    except json.JSONDecodeError as error:
        offset = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
        raise _at(f"not JSON: {error.msg}", offset) from error
    except ValueError as error:  # an integer of thousands of digits
        raise Malformed(f"not JSON: {error}") from error


def _at(problem: str, offset: int) -> Malformed:
    error = Malformed(problem)
    error.offset = offset  # type: ignore[attr-defined]
    return error


def as_object(value: Any, where: str) -> dict[str, Any]:
    """``value`` as a JSON object. Raises Malformed."""
    if not isinstance(value, dict):
        raise Malformed(f"{where} is {_kind(value)}, not an object")
    return value


def as_list(value: Any, where: str) -> list[Any]:
    """``value`` as a JSON array. Raises Malformed."""
    if not isinstance(value, list):
        raise Malformed(f"{where} is {_kind(value)}, not an array")
    return value


def as_int(value: Any, where: str, bits: int = 64) -> int:
    """``value`` as an integer of ``bits`` bits. Raises Malformed.

    Writers in other languages give 7 as 7.0 or, for want of 64-bit numbers, as "7".
    """
    number = as_number(value, where)
    limit = _INT_LIMIT[bits]
    if not -limit <= number < limit:
        raise Malformed(f"{where} is {number}, which does not fit {bits} bits")
    return number


def as_time(value: Any, where: str) -> int:
    """Milliseconds since 1970, moved into the years 2 to 9998. Raises Malformed."""
    return min(max(as_int(value, where), _TIMES[0]), _TIMES[1])


def as_number(value: Any, where: str) -> int:
    """``value`` as an integer of any size. Raises Malformed.

    A snapshot id is one: Java's are 63 bits long, but other writers take random numbers of 64 bits,
    or of 128, and an id is only ever compared.
    """
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT_FLOATS:
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise Malformed(f"{where} is {_kind(value)}, not an integer")


def as_text(value: Any, where: str) -> str:
    """``value`` as a string. Raises Malformed."""
    if not isinstance(value, str):
        raise Malformed(f"{where} is {_kind(value)}, not a string")
    return value


def required(fields: Mapping[str, Any], key: str, where: str) -> Any:
    """The value of a key that must be there and not null. Raises Malformed."""
    value = fields.get(key)
    if value is None:
        raise Malformed(f"{where} lacks {key}")
    return value


def required_int(fields: Mapping[str, Any], key: str, where: str, bits: int = 64) -> int:
    """The integer of a key that must be there. Raises Malformed."""
    return as_int(required(fields, key, where), f"{where} {key}", bits)


def required_text(fields: Mapping[str, Any], key: str, where: str) -> str:
    """The string of a key that must be there. Raises Malformed."""
    return as_text(required(fields, key, where), f"{where} {key}")


def optional_int(fields: Mapping[str, Any], key: str, where: str, bits: int = 64) -> int | None:
    """The integer of a key, None when it is absent or null. Raises Malformed."""
    value = fields.get(key)
    return None if value is None else as_int(value, f"{where} {key}", bits)


def required_id(fields: Mapping[str, Any], where: str) -> int:
    """The snapshot id, which must be there. Raises Malformed."""
    return as_number(required(fields, "snapshot-id", where), f"{where} snapshot-id")


def optional_id(fields: Mapping[str, Any], key: str, where: str) -> int | None:
    """The snapshot id of a key, None when it is absent, null or -1. Raises Malformed."""
    value = fields.get(key)
    found = None if value is None else as_number(value, f"{where} {key}")
    return None if found in _NO_ID else found


def optional_text(fields: Mapping[str, Any], key: str, where: str) -> str | None:
    """The string of a key, None when it is absent or null. Raises Malformed."""
    value = fields.get(key)
    return None if value is None else as_text(value, f"{where} {key}")


def optional_flag(fields: Mapping[str, Any], key: str, where: str) -> bool:
    """The boolean of a key, False when it is absent or null. Raises Malformed."""
    value = fields.get(key)
    if value is None:
        return False
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise Malformed(f"{where} {key} is {_kind(value)}, not true or false")
    return value


def objects(fields: Mapping[str, Any], key: str, where: str) -> Iterator[dict[str, Any]]:
    """The objects of an array; none when the key is absent or null. Raises Malformed."""
    value = fields.get(key)
    if value is None:
        return
    for index, each in enumerate(as_list(value, f"{where} {key}")):
        yield as_object(each, f"{where} {key}[{index}]")


def sane(listed: Any, where: str, parse: Callable[[dict[str, Any]], Parsed]) -> Iterator[Parsed]:
    """The objects of an array by ``parse``, without those that are malformed.

    For what no answer depends on: a strange entry does not close the table.
    """
    for each in listed if isinstance(listed, list) else ():
        with suppress(Malformed):
            yield parse(as_object(each, where))


def text_map(fields: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    """An object of strings, {} when absent; scalars of other kinds are taken by their text."""
    value = fields.get(key)
    if value is None:
        return {}
    return {
        name: each if isinstance(each, str) else json.dumps(each)
        for name, each in as_object(value, f"{where} {key}").items()
        if each is not None
    }


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


# ------------------------------------------------------------------ whole numbers
# Numbers in the texts of properties, options and summaries have Java's 64 bits, or are invalid;
# those of manifests are rows or bytes that one file may have, or unknown.


_WHOLE: Final = re.compile(r"\+?[0-9]{1,19}")
_MOST: Final = (1 << 63) - 1
_SHOWN: Final = 40
# More rows, or bytes, than a file has: sums of millions of them have 64 bits.
_MOST_OF_FILE: Final = 1 << 42


def of_file(numbers: list[int]) -> list[int]:
    """The numbers of rows, or bytes, of files; -1, unknown, for those that no file has.

    >>> of_file([7, 1 << 62, -5])
    [7, -1, -1]
    """
    if not numbers or 0 <= min(numbers) <= max(numbers) <= _MOST_OF_FILE:
        return numbers
    return [each if 0 <= each <= _MOST_OF_FILE else -1 for each in numbers]


def whole_number(text: str | None, least: int = 0) -> int | None:
    """A text as a number; None for other texts, for less than ``least`` and beyond 64 bits.

    >>> whole_number("12"), whole_number("1e3"), whole_number("9" * 400), whole_number("0", least=1)
    (12, None, None, None)
    """
    stripped = "" if text is None else text.strip(" ")
    number = int(stripped) if _WHOLE.fullmatch(stripped) else -1
    return number if least <= number <= _MOST else None


def number_property(
    properties: Mapping[str, str], name: str, default: int, least: int = 0, kind: str = "property"
) -> int:
    """The number of a property, ``default`` if it is not set. Raises ProgrammingError."""
    text = properties.get(name)
    number = default if text is None else whole_number(text, least)
    if number is None:
        shown = repr(text) if len(str(text)) <= _SHOWN else f"{str(text)[:_SHOWN]!r}…"
        raise ProgrammingError(
            f"{kind} {name} is {shown}; it has to be a number from {least} on, of 64 bits at most"
        )
    return number
