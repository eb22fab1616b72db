"""SHOW, DESCRIBE, SUMMARIZE, DIFF and BLAME: as statements, and in place of a table in FROM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from icesql.config import setting_key
from icesql.errors import ProgrammingError, nearest
from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import Change, Sources, spliced
from icesql.sql.keywords import ROWS_WORDS, word_set
from icesql.sql.lexer import (
    CLOSING,
    OPENING,
    TEXT,
    WORD,
    Span,
    Token,
    Tokens,
    closing,
    is_name,
    outer,
    span_of,
)
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query, Shown, Statement

if TYPE_CHECKING:
    from icesql.sql.commands import Commands


# ------------------------------------------------------------------ DIFF and BLAME
# Each is read as ``FROM t`` with a clause for the comparison.


COMPARED: Final = ("DIFF", "BLAME")
_BEFORE_QUERY: Final = ("FROM", "JOIN", ",", "(", "AS")


def compared_at(tokens: Tokens) -> list[int]:
    """Return the indexes at which DIFF and BLAME begin a query."""
    found = []
    for index, token in enumerate(tokens[:-1]):
        if token.word not in COMPARED:
            continue
        in_brackets = (
            index > 1 and tokens[index - 1].word == "(" and tokens[index - 2].word in _BEFORE_QUERY
        )
        place = end_of_name(tokens, index + 1)
        compares = [each.word for each in tokens[place : place + 1]] == ["BETWEEN"]
        is_query = place > index + 1 and (compares or token.word == "BLAME")
        if (index == 0 or in_brackets) and is_query:
            found.append(index)
    return found


def is_summary(tokens: Tokens, index: int) -> bool:
    """True if ``DIFF SUMMARY t`` begins at ``index``, not DIFF of a table named summary."""
    words = [each.word for each in tokens[index : index + 3]]
    return words[:2] == ["DIFF", "SUMMARY"] and words[2:] != ["BETWEEN"]


def check_compared(tokens: Tokens) -> None:
    """Raise SqlSyntaxError for tokens that start with DIFF or BLAME but are not such a query."""
    words, word, place = TokenCursor(tokens, ""), tokens[0].word, end_of_name(tokens, 1)
    if place == 1:
        raise syntax_error(f"{word} takes a table", words.offset(1), ("a table",))
    if word == "DIFF" and words.word(place) != "BETWEEN":
        what = "DIFF t BETWEEN a AND b compares two states"
        raise syntax_error(what, words.offset(place), ("BETWEEN",))


def end_of_name(tokens: Tokens, index: int) -> int:
    """Return the end of the table's name, or of a call with its path, that begins at ``index``."""
    if index >= len(tokens) or not is_name(tokens[index]):
        return index
    if tokens[index].text.lower() == "iceberg_scan":
        kinds = [each.word for each in tokens[index:]]
        return index + kinds.index(")") + 1 if ")" in kinds else index
    index += 1
    while index + 1 < len(tokens) and tokens[index].word == ".":
        index += 2
    return index


def read_as_from(tokens: Tokens, places: Sequence[int]) -> list[Token]:
    """Return the tokens with FROM inserted before each DIFF and BLAME, at the same offset."""
    made: list[Token] = []
    for index, token in enumerate(tokens):
        if index in places:
            made.append(Token(WORD, "FROM", token.start, token.start + 4, "FROM"))
        made.append(token)
    return made


# ------------------------------------------------------------------ statements in FROM


# Prefix of the statement's name in the text and the tree. Names of users cannot begin with it.
PREFIX: Final = "__sh"
_WORDS: Final = ("SHOW", "DESCRIBE", "DESC", "SUMMARIZE")
_BEFORE: Final = ("FROM", "JOIN", ",", "(")


def statements_in_from(
    tokens: Tokens, read: Callable[[Tokens], Statement]
) -> list[tuple[int, int, Shown | Query]]:
    """Return the statements in brackets in FROM, each with the indexes of its brackets.

    Raises UnsupportedSqlError, SqlSyntaxError.
    """
    found: list[tuple[int, int, Shown | Query]] = []
    for first, last in _places(tokens):
        inner = tokens[first + 1 : last]
        parameter = next((each for each in inner if each.word == "?"), None)
        if parameter is not None and any(each.word == "?" for each in tokens[:first]):
            # It would be counted before the earlier one.
            what = f"a parameter in {inner[0].word} in FROM behind another one"
            raise unsupported(what, parameter, "number them: $1, $2")
        statement = read(inner)
        is_about = isinstance(statement, Query) and bool(statement.about)
        if not isinstance(statement, Shown | Query) or is_about != isinstance(statement, Query):
            word = inner[0].word
            raise unsupported(f"{word} of a query as a table", inner[0], "run it by itself")
        if len(f"{PREFIX}{len(found)}") > tokens[last].stop - tokens[first].start:
            raise unsupported("so many statements in FROM", tokens[first])
        found.append((first, last, statement))
    return found


def _places(tokens: Tokens) -> Iterator[Span]:
    """Yield the indexes of the brackets of each statement."""
    end = 0
    for index in range(2, len(tokens) - 1):
        word = tokens[index]
        if (
            index < end
            or tokens[index - 1].word != "("
            or tokens[index - 2].word not in _BEFORE
            or not (word.word in _WORDS or is_summary(tokens, index))
            # The word is the name of a table or column.
            or tokens[index + 1].word in (")", ".", ",")
        ):
            continue
        end = closing(tokens, index - 1)
        if end < len(tokens):
            yield index - 1, end


# PIVOT and UNPIVOT in DuckDB's two spellings, as far as the tree needs them.
#
# The engine runs the user's own text. The tree gives the tables and columns that are read; DuckDB's
# parser turns a PIVOT statement into ``SELECT * FROM`` its source with the PIVOT.
#
# ``PIVOT t ON c USING sum(x)`` has a column for each value of c. Until these values are read, a
# string is the placeholder for the list: ``ON c IN ('…')``; see ``query.first_queries``.

NO_VALUES: Final = "PIVOT without a list of values"
LISTED: Final = "list the values: PIVOT t ON y IN ('a', 'b') USING sum(x)"
# The placeholder for values that are not read yet, with a private-use character.
UNREAD: Final = "('\ue000values\ue000')"


# Find the PIVOTs of a text without a list of values, and insert a placeholder for each list.

_PIVOTS: Final = ("PIVOT", "PIVOT_WIDER")
_KEPT: Final = ("VIEW", "MACRO", "FUNCTION")
_QUERIES: Final = (*ROWS_WORDS, *_PIVOTS)
_AFTER: Final = word_set("ORDER LIMIT OFFSET UNION EXCEPT INTERSECT WHERE HAVING QUALIFY WINDOW")
_ENDS: Final = ("USING", "GROUP", *_AFTER)


class Unread(Frozen):
    """One item of ``PIVOT … ON`` whose values are not read yet, by spans in a text.

    ``start`` to ``end`` is the placeholder list, ``pivot`` the whole PIVOT. ``queries`` are the
    CTEs that ``source`` may refer to.
    """

    start: int
    end: int
    pivot: Span
    item: Span
    source: Span
    queries: tuple[Span, ...]
    is_recursive: bool


def marked(sql: str, tokens: Tokens) -> tuple[str, Sources] | None:
    """Return a statement's text with a placeholder list for each PIVOT without one; None if none.

    A text that is stored, a view or a macro, gets no placeholders.
    """
    words = [each.word for each in tokens[:5]]
    if words[0] in ("ALTER", "PREPARE") or (
        words[0] == "CREATE" and any(each in words for each in _KEPT)
    ):
        return None
    edits: list[Change] = []
    for _, _, items in _pivots(tokens):
        for first, last in items:
            if outer(tokens, first, ("IN",)) > last:
                start, end = tokens[first].start, tokens[last].stop
                edits += [(start, start, "("), (end, end, f") IN {UNREAD}")]
    return spliced(sql, *span_of(tokens), edits) if edits else None


def first_unread(tokens: Tokens) -> Unread | None:
    """Return the first placeholder whose own source contains no other one; None if none."""
    pivots = [*_pivots(tokens)]
    # First and last token of ``(item) IN ('…')``, by the offset of the placeholder string.
    marks = {
        tokens[last - 1].start: (first, last)
        for _, _, items in pivots
        for first, last in items
        if last > first + 4 and f"('{tokens[last - 1].text}')" == UNREAD
    }
    for pivot, (begin, stop), items in pivots:
        source = tokens[begin].start, tokens[stop].stop
        queries, is_recursive = _queries_before(tokens, pivot)
        if any(start <= mark < end for mark in marks for start, end in (source, *queries)):
            continue
        for first, last in items:
            if (first, last) in marks.values():
                item = tokens[first].start, tokens[last - 4].stop
                place = tokens[last - 2].start, tokens[last].stop
                after = outer(tokens, pivot + 1, _AFTER)
                whole = tokens[pivot].start, tokens[after - 1].stop
                return Unread(*place, whole, item, source, tuple(queries), is_recursive)
    return None


def _pivots(
    tokens: Tokens,
) -> Iterator[tuple[int, Span, list[Span]]]:
    """Yield each ``PIVOT source ON items``: its index, and the spans of source and items."""
    for index, token in enumerate(tokens[:-2]):
        if token.word not in _PIVOTS or (index and tokens[index - 1].text == "."):
            continue
        begin = index + 1
        if tokens[begin].text == "(" and tokens[begin + 1].word not in _QUERIES:
            continue  # FROM t PIVOT (sum(x) FOR c IN (…)), or the name of a function
        on = outer(tokens, begin, ("ON", "JOIN", *_ENDS))
        if on <= begin or on >= len(tokens) or tokens[on].word != "ON":
            continue
        end = outer(tokens, on + 1, _ENDS)
        items, first = [], on + 1
        while first < end:
            stop = min(outer(tokens, first, (",",)), end)
            if stop > first:
                items.append((first, stop - 1))
            first = stop + 1
        yield index, (begin, on - 1), items


def _queries_before(tokens: Tokens, place: int) -> tuple[list[Span], bool]:
    """Return the spans of the CTEs in scope at ``place``, and whether a WITH is RECURSIVE."""
    found: dict[str, Span] = {}
    is_recursive = False
    # The first token in each bracket around the place, from outside in.
    begins = [0]
    for index in range(place):
        if tokens[index].word in OPENING:
            begins.append(index + 1)
        elif tokens[index].word in CLOSING and len(begins) > 1:
            begins.pop()
    for begin in begins:
        first = outer(tokens, begin, ("WITH",)) + 1
        if first >= place or tokens[first - 1].word != "WITH" or tokens[first].text == "(":
            continue
        if tokens[first].word == "RECURSIVE":
            is_recursive, first = True, first + 1
        while first < place:
            opening = outer(tokens, first, ("AS",)) + 1
            while opening < place and tokens[opening].text != "(":
                opening += 1  # AS [NOT] MATERIALIZED (
            closing = outer(tokens, opening + 1, ())
            if closing >= place:
                break
            found[tokens[first].text.lower()] = tokens[first].start, tokens[closing].stop
            if tokens[closing + 1].text != ",":
                break
            first = closing + 2
    return list(found.values()), is_recursive


# ------------------------------------------------------------------ SHOW by a table
# Its words select rows of ``query.show`` and the reader of the rest.


_KINDS: Final = (
    "TABLES", "VIEWS", "NAMESPACES", "CATALOGS", "SNAPSHOTS", "REFS", "BRANCHES", "TAGS", "COLUMNS",
    "PARTITIONS", "HISTORY", "CREATE TABLE", "CREATE VIEW", "TBLPROPERTIES", "FUNCTIONS",
    "PROCEDURES", "ALL", "a setting",
)  # fmt: skip


def read_show(reader: Commands) -> Shown:
    """Read the statement after SHOW. Raises SqlSyntaxError."""
    at, first = reader.here, reader.take()
    if not first:
        raise syntax_error("nothing follows SHOW", at, _KINDS)
    for words, (what, then) in _SHOW.items():
        head, _, second = words.partition(" ")
        if head == first and (not second or reader.skip(second)):
            return then(reader, Shown(what))
    shown = Shown("SETTING", name=_setting(first, reader, at))
    reader.end()
    return shown


# ------------------------------------------------------------ what follows


def _names(reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM namespace] [LIKE pattern]``."""
    namespace = reader.name() if reader.either("FROM", "IN") else None
    return _like(reader, replace(shown, namespace=namespace))


def _like(reader: Commands, shown: Shown) -> Shown:
    """Read ``[LIKE pattern]`` or ``[ILIKE pattern]``, both case-insensitive."""
    if reader.either("LIKE", "ILIKE"):
        shown = replace(shown, like=reader.text("a text"))
    reader.end()
    return shown


def _functions(reader: Commands, shown: Shown) -> Shown:
    """Read ``[LIKE pattern]``, or the pattern alone, as in Spark."""
    shown = replace(shown, name=reader.parse.translated)
    if len(reader.rest) == 1 and reader.rest[0].text.upper() != "LIKE":
        return replace(shown, like=reader.rest[0].text or None)
    return _like(reader, shown)


def _procedures(reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM [catalog.]system] [LIKE pattern]``: all catalogs have the same procedures."""
    if reader.either("FROM", "IN"):
        at = reader.rest[0].start if reader.rest else None
        if reader.name()[-1].lower() != "system":
            raise syntax_error("procedures are in system", at, ("system",))
    return _like(reader, shown)


def _named(name: str, reader: Commands, shown: Shown) -> Shown:
    reader.end()
    return replace(shown, name=name)


def _table(before: tuple[str, ...], reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM] table``, optionally after one of the words ``before``."""
    reader.either(*before)
    return replace(shown, reference=reader.table(shown.label))


def _snapshots(reader: Commands, shown: Shown) -> Shown:
    """Read ``[EXTENDED] [FROM] table``."""
    if reader.is_word("EXTENDED"):
        reader.take()
        shown = replace(shown, what="SNAPSHOTS EXTENDED")
    reader.either(*_OF)
    return replace(shown, reference=reader.table("SHOW SNAPSHOTS"))


def _columns(reader: Commands, shown: Shown) -> Shown:
    """Read ``FROM table [FROM namespace] [LIKE pattern]``."""
    reader.either(*_OF)
    rest, like = reader.rest, None
    if len(rest) > 2 and rest[-2].word in ("LIKE", "ILIKE"):
        if rest[-1].kind != TEXT:
            raise syntax_error(f'unexpected "{rest[-1].text}"', rest[-1], ("a text",))
        like, rest = rest[-1].text, rest[:-2]
    place = next((index for index, each in enumerate(rest) if each.word in ("FROM", "IN")), None)
    outer: tuple[str, ...] = ()
    if place is not None:
        outer = tuple(token.text for token in rest[place + 1 :] if token.text != ".")
        rest = rest[:place]
    cut = len(rest) - len(reader.rest)
    reference = reader.table("SHOW COLUMNS", cut or None)
    if outer:
        reference = replace(reference, parts=(*outer, *reference.parts))
    return replace(shown, reference=reference, like=like)


def _properties(reader: Commands, shown: Shown) -> Shown:
    """Read ``table [('key')]``."""
    reader.either(*_OF)
    rest, key, cut = reader.rest, None, 0
    words = [token.word for token in rest]
    if words[-1:] == [")"] and "(" in words:
        opened = len(words) - 1 - words[::-1].index("(")
        if opened and words[opened - 1] != "ICEBERG_SCAN":
            written = rest[opened + 1 : -1]
            if len(written) > 1 and any(token.kind == TEXT for token in written):
                raise syntax_error(f'unexpected "{written[1].text}"', written[1], (")",))
            key = "".join(token.text for token in written)
            cut = opened - len(rest)
    return replace(shown, reference=reader.table(shown.label, cut or None), like=key)


def _setting(word: str, reader: Commands, at: int) -> str:
    name = word.lower()
    while reader.either(".", "-"):
        name += "." + reader.take().lower()
    try:
        return setting_key(name)
    except ProgrammingError:
        hint = nearest(word, _KINDS[:-1])
        problem = f'unexpected "{word}" after SHOW{hint}'
        raise syntax_error(problem, at, () if hint else _KINDS) from None


_OF: Final = ("FROM", "IN", "OF")
_Then: TypeAlias = Callable[["Commands", Shown], Shown]
_of_any: _Then = partial(_table, (*_OF, "FOR"))
_Row: TypeAlias = tuple[str, _Then]
# One or two words: the rows that they select, and the reader of the rest. Longer ones come first.
_SHOW: Final[dict[str, _Row]] = {
    "TABLES": ("TABLES", _names),
    "VIEWS": ("VIEWS", _names),
    **dict.fromkeys(("SCHEMAS", "NAMESPACES", "DATABASES"), ("NAMESPACES", _names)),
    "CATALOGS": ("CATALOGS", _like),
    "SNAPSHOTS": ("SNAPSHOTS", _snapshots),
    "REFS": ("REFS", partial(_table, _OF)),
    **{each: (each, _of_any) for each in ("BRANCHES", "TAGS", "PARTITIONS", "HISTORY")},
    **dict.fromkeys(("COLUMNS", "FIELDS"), ("COLUMNS", _columns)),
    **{each: (each, partial(_table, ())) for each in ("CREATE TABLE", "CREATE VIEW")},
    "TBLPROPERTIES": ("TBLPROPERTIES", _properties),
    **dict.fromkeys(
        ("USER FUNCTIONS", "SYSTEM FUNCTIONS", "ALL FUNCTIONS", "FUNCTIONS"),
        ("FUNCTIONS", _functions),
    ),
    "PROCEDURES": ("PROCEDURES", _procedures),
    "ALL TABLES": ("ALL TABLES", _like),
    **dict.fromkeys(("ALL", "SESSION", "PARAMETERS", "VARIABLES"), ("ALL", _like)),
    "TIME ZONE": ("SETTING", partial(_named, "timezone")),
    "SNAPSHOT TIME": ("SETTING", partial(_named, "snapshot_time")),
}
