"""Convert date and time patterns to those of DuckDB's ``strftime`` and ``strptime``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from icesql.query.dialects.java_patterns import LETTERS, pieces

# Patterns of MySQL, for Trino's date_format and date_parse.
_MYSQL: Final = {
    "Y": "%Y", "y": "%y", "m": "%m", "c": "%-m", "d": "%d", "e": "%-d", "H": "%H", "k": "%-H",
    "h": "%I", "I": "%I", "l": "%-I", "i": "%M", "s": "%S", "S": "%S", "f": "%g000", "p": "%p",
    "T": "%H:%M:%S", "r": "%I:%M:%S %p", "j": "%j", "a": "%a", "W": "%A", "b": "%b", "M": "%B",
    "%": "%%", "v": "%V", "x": "%G",
}  # fmt: skip
# Patterns of Joda, for Trino's format_datetime.
_JODA: Final = {**LETTERS, "xxxx": "%G", "ww": "%V"}
_SNOWFLAKE: Final = {
    "YYYY": "%Y", "YY": "%y", "MMMM": "%B", "MM": "%m", "MON": "%b", "DD": "%d", "DY": "%a",
    "HH24": "%H", "HH12": "%I", "AM": "%p", "PM": "%p", "MI": "%M", "SS": "%S", "FF3": "%g",
    "FF6": "%f",
}  # fmt: skip
_WORD: Final = re.compile(
    "|".join(sorted(_SNOWFLAKE, key=len, reverse=True)) + r'|"[^"]*"|[A-Za-z0-9]+|[^A-Za-z0-9"]',
    re.IGNORECASE,
)


def from_mysql(pattern: str) -> str | None:
    """A pattern such as ``%Y-%m-%d %H:%i`` for strftime; None if a specifier has no equivalent."""
    found = re.findall("%.?|[^%]", pattern, re.DOTALL)
    return _converted([(each[0] == "%", each.removeprefix("%")) for each in found], _MYSQL)


def from_joda(pattern: str) -> str | None:
    """A pattern such as ``yyyy-MM-dd HH:mm`` for strftime; None if letters have no equivalent."""
    return _converted(pieces(pattern) or [(True, pattern)], _JODA)


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
