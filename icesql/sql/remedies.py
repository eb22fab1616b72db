"""Remedies for words and functions of other systems, read from ``grammar/``.

Meaning comes before spelling: ``nvl`` is ``coalesce``, not the most similar name, ``ntile``.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from icesql.errors import (
    ColumnNotFoundError,
    Error,
    SqlSyntaxError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from icesql.sql.function_table import TRANSLATED, table_rows
from icesql.sql.grammar import sections
from icesql.sql.reserved import advice_to_quote

# The hints for a function that a dialect lacks.
SIMILAR: Final = "did you mean {}()?"
NO_ROW: Final = "it is not in the table of its functions"
# Longer remedies help less than the name of the dialect that has the function.
_SHORT: Final = 60
_SYSTEMS: Final = ("spark", "snowflake", "trino")


def meaning(name: str, dialect: str = "") -> str:
    """Return the hint for a function that ``dialect`` lacks and other systems have; "" for none.

    ``dialect`` is one of function_table's TRANSLATED, "" for icesql's own.
    """
    name = name.lower()
    text = _sections()["functions"].get(name, "")
    if dialect:
        same = _forms(dialect)
        found = next((same[each] for each in (text, *_texts(name)) if each in same), "")
        return f"did you mean {found}()?" if found and found != name else ""
    short = (each for each in _texts(name) if len(each) <= _SHORT and "error(" not in each)
    text = text or next(short, "")
    if text:
        return f"write {text}"
    has = next((each for each in _SYSTEMS if name in {row.name for row in table_rows(each)}), "")
    return f"{has.capitalize()} has it: --dialect {has}, connect(dialect='{has}')" if has else ""


def _texts(name: str) -> list[str]:
    """Return remedies from the tables of other systems, with the arguments named a, b, c."""
    return [
        _lettered(row.text)
        for each in _SYSTEMS
        for row in table_rows(each)
        if row.name == name and row.sign != "@"
    ]


@functools.cache
def _forms(dialect: str) -> dict[str, str]:
    """Return the functions of a dialect by their equivalents in DuckDB's spelling."""
    rows = table_rows(dialect) if dialect in TRANSLATED else ()
    return {_lettered(row.text): row.name for row in reversed(rows) if row.sign != "@"}


def _lettered(text: str) -> str:
    return re.sub(r"\$(\d)", lambda found: "abcdefghi"[int(found[1]) - 1], text)


@functools.cache
def _sections() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for section, rows in sections("remedies.txt").items():
        parts = (f"{row} ".partition(" = ") for row in rows)
        found[section] = {words: remedy.rstrip() for words, _, remedy in parts}
    return found


def refusals(section: str) -> dict[str, str]:
    """Return what there is instead of each word of the section "statements" or "created"."""
    rows = _sections()[section].items()
    return {word: instead for words, instead in rows for word in words.split("|")}


def add_remedy(error: Error, sql: str, *, own: bool) -> None:
    """Add to an error what to write instead of the words at its offset, if a remedy is known.

    ``own``: the statement is in icesql's own dialect.
    """
    offset = getattr(error, "offset", None)
    if not isinstance(offset, int) or 'write "' in getattr(error, "hint", ""):
        return
    if own and isinstance(error, UnsupportedSqlError):
        called = re.fullmatch(r"the function (\w+)\(\)", error.construct)
        if called and (means := meaning(called[1])):
            _say(error, means)
            return
    for section in ("any", "own") if own else ("any",):
        for words, remedy in _sections()[section].items():
            for found in _pattern(words).finditer(sql, max(offset - 200, 0), offset + 200):
                if found.start() <= offset <= found.end():
                    _say(error, found.expand(remedy))
                    return
    if own and isinstance(error, SqlSyntaxError) and (advice := advice_to_quote(error, sql)):
        _say(error, advice)


@functools.cache
def _pattern(words: str) -> re.Pattern[str]:
    text = words.replace(" ", r"\s+").replace(r"\s+?", r"\s*")
    return re.compile(rf"(?<![\w.]){text}" if words[0].isalpha() else text, re.IGNORECASE)


def _say(error: Error, remedy: str) -> None:
    match error:
        case SqlSyntaxError():
            error.problem, error.expected = f"{error.problem.partition('; ')[0]}; {remedy}", ()
        case UnsupportedSqlError():
            error.hint = remedy
        case TableNotFoundError() | ColumnNotFoundError():
            error.similar, error.hint = (), remedy
        case _:
            return
    error.args = (error._message(),)
