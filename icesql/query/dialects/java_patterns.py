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
    found: list[tuple[bool, str]] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        at = piece.end()
        quoted, letters, _, other = piece.groups()
        text = letters or other or quoted.replace("''", "'") or "'"
        found.append((letters is not None, text))
    return found
