"""SHOW, DESCRIBE and SUMMARIZE in place of a table: ``SELECT … FROM (SHOW REFS FROM t)``.

A name of the same length replaces each, so that all other words keep their offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from icesql.frozen import Frozen
from icesql.sql.keywords import ROWS_WORDS, word_set
from icesql.sql.lexer import CLOSING, OPENING, Span, Tokens, closing, outer, span_of
from icesql.sql.positions import unsupported
from icesql.sql.show_statements.differences import is_summary
from icesql.sql.sources import Change, Sources, spliced
from icesql.sql.statement import Query, Shown, Statement

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
# string is the placeholder for the list: ``ON c IN ('…')``; see ``query.pivot_values``.

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
