"""The dialects as data, read from ``grammar/``: the Lark grammar and the tables of functions.

sqlglot parses statements; Lark never does. The grammar serves completion, the "expected …" of
syntax errors, random statements in tests, and readers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icesql.frozen import Frozen
from icesql.sql.keywords import word_set

if TYPE_CHECKING:
    from lark import Lark
    from sqlglot import exp


# Lark's %import would rename terminals; the files are joined to one text in this order.
FILES: Final = (
    "session.lark",
    "select.lark",
    "time_travel.lark",
    "expression.lark",
    "tokens.lark",
)
# How messages show the terminals of the grammar that are not keywords.
_TERMINALS: Final = """
( LPAR
) RPAR
[ LSQB
] RSQB
{ LBRACE
} RBRACE
, COMMA
. DOT
: COLON
; SEMICOLON
* STAR
+ PLUS
- MINUS
= EQUAL
/ SHARE
|| CONCAT
:: CAST_TO
=> ARROW
a comparison COMPARISON
a name IDENTIFIER
a name QUOTED_NAME
a text STRING
a text BYTES
a text PERIOD
a text AMOUNT
a number NUMBER
a number INTEGER
a parameter PARAMETER
a type TYPE_NAME
a type DECIMAL
a unit of time UNIT
computeUpdates or deduplicationMode CHANGES_OPTION
the end of the statement $END
"""
_SHOWN: Final = {
    name: shown for shown, name in (line.rsplit(" ", 1) for line in _TERMINALS.strip().splitlines())
}
# Words that may be names; see ``_free_word`` of the grammar.
_FREE_WORDS: Final = word_set("DATE TIME TIMESTAMP EXTRACT NOW")


def folder() -> Path:
    """Return the folder of the grammar: in the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_grammar"
    return installed if installed.is_dir() else package.parent / "grammar"


def lines(name: str) -> list[str]:
    """Return the lines of one of the grammar's tables, without blank lines and comments."""
    whole = _read(name).splitlines()
    return [line for line in whole if line and not line.startswith("#")]


@functools.cache
def sections(name: str) -> dict[str, list[str]]:
    """Return the lines below each ``[section]`` of a table, as ``lines``; "" is the head."""
    found: dict[str, list[str]] = {}
    rows = found.setdefault("", [])
    for line in lines(name):
        if line.startswith("[") and line.endswith("]"):
            rows = found.setdefault(line.strip("[]"), [])
        else:
            rows.append(line)
    return found


@functools.cache
def columns(name: str, section: str) -> list[list[str]]:
    """Return the rows of a section as lists of their columns, which tabs separate."""
    return [line.split("\t") for line in sections(name)[section]]


def kinds_of_nodes(section: str) -> frozenset[str]:
    """Return the keys of sqlglot's nodes that a section of ``nodes.txt`` lists."""
    return frozenset(" ".join(sections("nodes.txt")[section]).split())


def words_by_head(name: str) -> Iterator[tuple[str, str]]:
    """Yield each word of the indented lines of a table, after the line that heads them."""
    head = ""
    for line in lines(name):
        if line.startswith(" "):
            yield from ((head, word) for word in line.split())
        else:
            head = line.strip()


def _read(name: str) -> str:
    return (folder() / name).read_text(encoding="utf-8")


@functools.cache
def text() -> str:
    """Return the whole grammar as one text."""
    return "\n".join(map(_read, FILES))


@functools.cache
def load() -> Lark:
    """Return the LALR parser of the grammar, which has no conflicts; loaded once."""
    from lark import Lark

    return Lark(text(), parser="lalr", lexer="contextual", maybe_placeholders=False)


@functools.cache
def keywords() -> tuple[str, ...]:
    """Return the dialect's keywords in upper case and alphabetical order; needs no Lark."""
    found = re.findall(r"^([A-Z_]+)\.[23]:\s+/[a-z_]+\\b/i$", _read("tokens.lark"), re.MULTILINE)
    return tuple(sorted(found))


def next_terminals(sql: str) -> frozenset[str] | None:
    """Return the terminals that may follow a text, including "$END"; None for a wrong text."""
    from lark.exceptions import UnexpectedInput

    try:
        parser = load().parse_interactive(sql)
        parser.exhaust_lexer()
        return frozenset(parser.accepts())  # type: ignore[no-untyped-call]
    except UnexpectedInput:
        return None


def expected_after(text: str) -> tuple[str, ...]:
    """Return the words that may come after a text, keywords first; () for a wrong text.

    ``text`` ends between two words. Operators are left out if a clause can follow.
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
        # Any value may come here: listing all words that begin one would hide the answer.
        rest = sorted(words & {"DISTINCT", "*", "ALL", ")", "SELECT"})
        return ("an expression", *rest)
    names = sorted(word for word in words if word[:1].isupper())
    signs = sorted(word for word in words - values if not word[:1].isupper())
    plain = [sign for sign in signs if len(names) < 3 or sign in (")", "]", "}", ",")]
    return (*names, *plain, *sorted(values))


def completions(text: str) -> tuple[tuple[str, ...], bool]:
    """Return (keywords that may follow ``text``, True if a name may): for completion."""
    found = _without_free_words(next_terminals(text) or frozenset())
    known = set(keywords())
    return tuple(sorted(found & known)), bool(found & {"IDENTIFIER", "QUOTED_NAME"})


def _without_free_words(found: frozenset[str]) -> frozenset[str]:
    """Remove DATE and its like where no expression may begin: there they are names like others."""
    is_name = found >= _FREE_WORDS and "CASE" not in found
    return found - _FREE_WORDS if is_name else found


# ------------------------------------------------------------------ function tables


SPARK: Final = "spark"
# The dialects that have a function table.
TRANSLATED: Final = frozenset({SPARK, "trino", "snowflake"})
_ROW: Final = re.compile(r"([\w|]+)\((.*?)\) -> (\S.*?) (:?=|@) (.+)")


class TableRow(Frozen):
    """One form of a function, as a line of the file.

    ``sign`` is ``=``, ``:=`` for an expression that conditions prune by, or ``@`` if ``text`` is
    the name of a builder of the expression. ``section`` is scalar, aggregate or window.
    """

    name: str
    takes: str
    gives: str
    sign: str
    text: str
    section: str


def table_rows(dialect: str) -> tuple[TableRow, ...]:
    """Return the table of a dialect in ``TRANSLATED``, in the order of the file."""
    return _table_of(dialect)[0]


def function_names(dialect: str) -> frozenset[str]:
    """Return the functions of a dialect in ``TRANSLATED``, in lower case."""
    return _table_of(dialect)[1]


@functools.cache
def _table_of(dialect: str) -> tuple[tuple[TableRow, ...], frozenset[str]]:
    """Return the rows, and the names of all functions, including those that code translates."""
    rows: list[TableRow] = []
    by_code: set[str] = set()
    for section, listed in sections(f"{dialect}_functions.txt").items():
        for line in listed:
            if section == "code":
                by_code.update(line.split())
                continue
            parsed = _ROW.fullmatch(line)
            if parsed is None:
                raise ValueError(f"not a row of the function table: {line}")
            names, takes, gives, sign, text = parsed.groups()
            rows += [TableRow(name, takes, gives, sign, text, section) for name in names.split("|")]
    return tuple(rows), frozenset({row.name for row in rows} | by_code)


# icesql's own function table: the functions of every engine, read from ``grammar/``.


class Function(Frozen):
    """A row of the table: an example in the dialect's spelling and its value as the shell shows it.

    ``result`` is the declared result type; ``$1`` is the type of the first argument.
    """

    name: str
    result: str
    example: str
    value: str


@functools.cache
def functions() -> tuple[Function, ...]:
    """Return every row, in the order of the file."""
    return tuple(Function(*line.split(" | ", 3)) for line in lines("functions.txt"))


@functools.cache
def function_keys() -> frozenset[str]:
    """Return the ``function_key`` of each function of the table."""
    import sqlglot
    from sqlglot import exp

    found = set()
    for row in functions():
        tree = sqlglot.parse_one(f"SELECT {row.example}", dialect="duckdb")
        assert isinstance(tree, exp.Select)
        node = next(each for each in tree.selects[0].walk() if isinstance(each, exp.Func))
        while isinstance(node, exp.Cast) and isinstance(node.this, exp.Func):
            node = node.this
        found.add(function_key(node))
    return frozenset(found)


def function_key(node: exp.Func) -> str:
    """Return the identity of a function in a tree: all spellings of a function share it."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return type(node).__name__
