"""Patterns of dates and times as Java writes them: ``yyyy-MM-dd'T'HH:mm``."""

from __future__ import annotations

import re
from typing import Final

from icesql.sql.grammar import columns

_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z'])")


def letters(*systems: str) -> dict[str, str]:
    """DuckDB's specifiers by the letters of these sections of ``grammar/time_patterns.txt``."""
    return {row[0]: row[1] for system in systems for row in columns("time_patterns.txt", system)}


def pieces(pattern: str) -> list[tuple[bool, str]] | None:
    """Split a pattern into letters (True) and plain text (False); None for an open quote."""
    found = list(_PIECE.finditer(pattern))
    if "".join(each[0] for each in found) != pattern:
        return None
    return [
        (run is not None, run or other or quoted.replace("''", "'") or "'")
        for quoted, run, _, other in (each.groups() for each in found)
    ]
