"""Patterns of times in DuckDB's ``strftime``: those of Java, MySQL and Snowflake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


_SNOWFLAKE: Final = letters("snowflake")
_WORD: Final = re.compile(
    "|".join(sorted(_SNOWFLAKE, key=len, reverse=True)) + r'|"[^"]*"|[A-Za-z0-9]+|[^A-Za-z0-9"]',
    re.IGNORECASE,
)


def from_mysql(pattern: str) -> str | None:
    """A pattern such as ``%Y-%m-%d %H:%i`` for strftime; None if a specifier has no equivalent."""
    found = re.findall("%.?|[^%]", pattern, re.DOTALL)
    return _converted(
        [(each[0] == "%", each.removeprefix("%")) for each in found], letters("mysql")
    )


def from_joda(pattern: str) -> str | None:
    """A pattern such as ``yyyy-MM-dd HH:mm`` for strftime; None if letters have no equivalent."""
    return _converted(pieces(pattern) or [(True, pattern)], letters("java", "joda"))


def from_snowflake(pattern: str) -> str | None:
    """A pattern such as ``YYYY-MM-DD HH24:MI`` for strftime; None if letters have no equivalent."""
    found = [
        (each.upper() in _SNOWFLAKE or (each.isalpha() and each.upper() != "T"), each)
        for each in _WORD.findall(pattern)
    ]
    return _converted(
        [(known, each.upper() if known else each.strip('"')) for known, each in found], _SNOWFLAKE
    )


def _converted(found: Sequence[tuple[bool, str]], known: Mapping[str, str]) -> str | None:
    """Letters (True) and plain text as one pattern of strftime."""
    made = [
        known.get(text) if is_letters else text.replace("%", "%%") for is_letters, text in found
    ]
    return None if None in made else "".join(filter(None, made))
