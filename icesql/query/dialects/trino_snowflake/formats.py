"""Convert date and time patterns to those of DuckDB's ``strftime`` and ``strptime``."""

from __future__ import annotations

import re
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
    made = []
    rest = iter(pattern)
    for each in rest:
        if each != "%":
            made.append(each)
            continue
        found = _MYSQL.get(next(rest, ""))
        if found is None:
            return None
        made.append(found)
    return "".join(made)


def from_joda(pattern: str) -> str | None:
    """A pattern such as ``yyyy-MM-dd HH:mm`` for strftime; None if letters have no equivalent."""
    made = []
    for is_letters, text in pieces(pattern) or [(True, pattern)]:
        found = _JODA.get(text) if is_letters else text.replace("%", "%%")
        if found is None:
            return None
        made.append(found)
    return "".join(made)


def from_snowflake(pattern: str) -> str | None:
    """A pattern such as ``YYYY-MM-DD HH24:MI`` for strftime; None if letters have no equivalent."""
    made = []
    for piece in _WORD.findall(pattern):
        found = _SNOWFLAKE.get(piece.upper())
        if found is not None:
            made.append(found)
        elif piece.startswith('"'):
            made.append(piece.strip('"').replace("%", "%%"))
        elif piece.isalpha() and piece.upper() != "T":
            return None
        else:
            made.append(piece.replace("%", "%%"))
    return "".join(made)
