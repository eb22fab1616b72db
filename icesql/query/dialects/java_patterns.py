"""Patterns of dates and times as Java writes them: ``yyyy-MM-dd'T'HH:mm``."""

from __future__ import annotations

import re
from typing import Final

# Letters as DuckDB's strftime specifiers; a dialect adds its own and refuses all others.
LETTERS: Final = {
    "yyyy": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M",
    "m": "%-M", "ss": "%S", "s": "%-S", "SSS": "%g", "a": "%p", "E": "%a", "EE": "%a",
    "EEE": "%a", "EEEE": "%A", "DDD": "%j", "D": "%-j",
}  # fmt: skip
_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z'])")


def pieces(pattern: str) -> list[tuple[bool, str]] | None:
    """Split a pattern into letters (True) and plain text (False); None for an open quote."""
    found = list(_PIECE.finditer(pattern))
    if "".join(each[0] for each in found) != pattern:
        return None
    return [
        (letters is not None, letters or other or quoted.replace("''", "'") or "'")
        for quoted, letters, _, other in (each.groups() for each in found)
    ]
