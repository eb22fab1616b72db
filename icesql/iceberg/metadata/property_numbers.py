"""Whole numbers in the texts of properties, options and summaries: of Java's 64 bits, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icesql.errors import ProgrammingError

_WHOLE: Final = re.compile(r"\+?[0-9]{1,19}")
_MOST: Final = (1 << 63) - 1
_SHOWN: Final = 40


def whole_number(text: str | None, least: int = 0) -> int | None:
    """The number that a text is; None for others, for less than ``least`` and beyond 64 bits.

    >>> whole_number("12"), whole_number("1e3"), whole_number("9" * 400), whole_number("0", least=1)
    (12, None, None, None)
    """
    stripped = "" if text is None else text.strip(" ")
    number = int(stripped) if _WHOLE.fullmatch(stripped) else -1
    return number if least <= number <= _MOST else None


def number_property(
    properties: Mapping[str, str], name: str, default: int, least: int = 0, kind: str = "property"
) -> int:
    """That of a property, ``default`` where it is not set. Raises ProgrammingError."""
    text = properties.get(name)
    number = default if text is None else whole_number(text, least)
    if number is None:
        shown = repr(text) if len(str(text)) <= _SHOWN else f"{str(text)[:_SHOWN]!r}…"
        raise ProgrammingError(
            f"{kind} {name} is {shown}; it has to be a number from {least} on, of 64 bits at most"
        )
    return number
