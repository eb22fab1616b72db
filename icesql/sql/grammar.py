"""The Lark form of the promised dialect: what may come next, and the keywords.

sqlglot parses statements; Lark never does. The grammar serves completion, the "expected …" of
syntax errors, random statements in tests, and readers.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lark import Lark

# Lark's %import would rename terminals; the files are one text in this order.
FILES: Final = (
    "session.lark",
    "select.lark",
    "time_travel.lark",
    "expression.lark",
    "tokens.lark",
)
_SHOWN: Final = {
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "DOT": ".",
    "COLON": ":",
    "SEMICOLON": ";",
    "STAR": "*",
    "PLUS": "+",
    "MINUS": "-",
    "EQUAL": "=",
    "SHARE": "/",
    "CONCAT": "||",
    "CAST_TO": "::",
    "ARROW": "=>",
    "COMPARISON": "a comparison",
    "IDENTIFIER": "a name",
    "QUOTED_NAME": "a name",
    "STRING": "a text",
    "BYTES": "a text",
    "PERIOD": "a text",
    "AMOUNT": "a text",
    "NUMBER": "a number",
    "INTEGER": "a number",
    "PARAMETER": "a parameter",
    "TYPE_NAME": "a type",
    "DECIMAL": "a type",
    "UNIT": "a unit of time",
    "CHANGES_OPTION": "computeUpdates or deduplicationMode",
    "$END": "the end of the statement",
}

# Words that may be names; see ``_free_word`` of the grammar.
_FREE_WORDS: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "EXTRACT", "NOW"})


def folder() -> Path:
    """Where the grammar's files are: in the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_grammar"
    return installed if installed.is_dir() else package.parent / "grammar"


@functools.cache
def text() -> str:
    """The whole grammar as one text."""
    place = folder()
    return "\n".join((place / name).read_text(encoding="utf-8") for name in FILES)


@functools.cache
def load() -> Lark:
    """The LALR parser of the grammar, free of conflicts; loaded once."""
    from lark import Lark

    return Lark(text(), parser="lalr", lexer="contextual", maybe_placeholders=False)


@functools.cache
def keywords() -> tuple[str, ...]:
    """The words of the dialect in upper case and alphabetical order; needs no Lark."""
    tokens = (folder() / "tokens.lark").read_text(encoding="utf-8")
    return tuple(sorted(re.findall(r"^([A-Z_]+)\.[23]:\s+/[a-z_]+\\b/i$", tokens, re.MULTILINE)))


def next_terminals(sql: str) -> frozenset[str] | None:
    """The terminals that may follow a text, "$END" among them; None if it already is wrong."""
    from lark.exceptions import UnexpectedInput

    try:
        parser = load().parse_interactive(sql)
        parser.exhaust_lexer()
        return frozenset(parser.accepts())  # type: ignore[no-untyped-call]
    except UnexpectedInput:
        return None


def expected_after(text: str) -> tuple[str, ...]:
    """The words that may come after a text, keywords first; () if the text is wrong.

    ``text`` ends between two words. Operators are left out where a clause can follow.
    """
    found = next_terminals(text)
    if not found:
        return ()
    if "ICEBERG_SCAN" in found:
        return ("a table", *sorted({"SELECT"} & found))
    found = _without_free_words(found)
    words = {_SHOWN.get(name, name.replace("_", " ") if name not in keywords() else name)
             for name in found}  # fmt: skip
    values = {"a name", "a text", "a number", "a parameter", "a comparison"} & words
    if {"a name", "a number", "a parameter"} <= words:
        # A value may come here: the words that begin one would hide the answer.
        rest = sorted(words & {"DISTINCT", "*", "ALL", ")", "SELECT"})
        return ("an expression", *rest)
    names = sorted(word for word in words if word[:1].isupper())
    signs = sorted(word for word in words - values if not word[:1].isupper())
    plain = [sign for sign in signs if len(names) < 3 or sign in (")", "]", "}", ",")]
    return (*names, *plain, *sorted(values))


def completions(text: str) -> tuple[tuple[str, ...], bool]:
    """(keywords that may follow ``text``, whether a name may): for completion while typing."""
    found = _without_free_words(next_terminals(text) or frozenset())
    known = set(keywords())
    return tuple(sorted(found & known)), bool(found & {"IDENTIFIER", "QUOTED_NAME"})


def _without_free_words(found: frozenset[str]) -> frozenset[str]:
    """Where no expression may begin, DATE and its like are names as any other."""
    is_name = found >= _FREE_WORDS and "CASE" not in found
    return found - _FREE_WORDS if is_name else found
