"""Whole numbers of metadata, bounded where they are read.

Numbers in the texts of properties, options and summaries have Java's 64 bits, or are invalid; those
of manifests are rows or bytes that one file may have, or unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icesql.errors import ProgrammingError

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
