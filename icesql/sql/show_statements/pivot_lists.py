"""Which PIVOTs of a text have no list of values, and the text with a place for each list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from icesql.sql.lexer import CLOSING, OPENING, Token
from icesql.sql.macros.sources import Sources, spliced
from icesql.sql.show_statements.in_from import UNREAD

_PIVOTS: Final = ("PIVOT", "PIVOT_WIDER")
_KEPT: Final = ("VIEW", "MACRO", "FUNCTION")
_QUERIES: Final = ("SELECT", "FROM", "WITH", "VALUES", "TABLE", "(", *_PIVOTS)
_AFTER: Final = (
    "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "WHERE", "HAVING", "QUALIFY",
    "WINDOW",
)  # fmt: skip
_ENDS: Final = ("USING", "GROUP", *_AFTER)


class Unread(Struct, frozen=True):
    """One item of ``PIVOT … ON`` whose values are not read yet, by its places in a text.

    ``start`` to ``end`` is the list that holds their place, ``pivot`` all of the PIVOT. ``queries``
    are those of each WITH that ``source`` may name.
    """

    start: int
    end: int
    pivot: tuple[int, int]
    item: tuple[int, int]
    source: tuple[int, int]
    queries: tuple[tuple[int, int], ...]
    is_recursive: bool


def marked(sql: str, tokens: Sequence[Token]) -> tuple[str, Sources] | None:
    """The text of a statement with a list for each PIVOT without one; None where all have one.

    What is kept as a text, a view or a macro, has none to be read for it.
    """
    words = [each.word for each in tokens[:5]]
    if words[0] in ("ALTER", "PREPARE") or (
        words[0] == "CREATE" and any(each in words for each in _KEPT)
    ):
        return None
    edits: list[tuple[int, int, str]] = []
    for _, _, items in _pivots(tokens):
        for first, last in items:
            if _outer(tokens, first, ("IN",)) > last:
                start, end = tokens[first].start, tokens[last].stop
                edits += [(start, start, "("), (end, end, f") IN {UNREAD}")]
    return spliced(sql, tokens[0].start, tokens[-1].stop, edits) if edits else None


def first_unread(tokens: Sequence[Token]) -> Unread | None:
    """The first item of a text that waits for its values, and reads none that do; None if none."""
    pivots = [*_pivots(tokens)]
    # The last three tokens of ``(item) IN ('…')``, by the place of the text.
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
                after = _outer(tokens, pivot + 1, _AFTER)
                whole = tokens[pivot].start, tokens[after - 1].stop
                return Unread(*place, whole, item, source, tuple(queries), is_recursive)
    return None


def _pivots(
    tokens: Sequence[Token],
) -> Iterator[tuple[int, tuple[int, int], list[tuple[int, int]]]]:
    """Each ``PIVOT source ON items``: its place, those of the source and of the items."""
    for index, token in enumerate(tokens[:-2]):
        if token.word not in _PIVOTS or (index and tokens[index - 1].text == "."):
            continue
        begin = index + 1
        if tokens[begin].text == "(" and tokens[begin + 1].word not in _QUERIES:
            continue  # FROM t PIVOT (sum(x) FOR c IN (…)), or the name of a function
        on = _outer(tokens, begin, ("ON", "JOIN", *_ENDS))
        if on <= begin or on >= len(tokens) or tokens[on].word != "ON":
            continue
        end = _outer(tokens, on + 1, _ENDS)
        items, first = [], on + 1
        while first < end:
            stop = min(_outer(tokens, first, (",",)), end)
            if stop > first:
                items.append((first, stop - 1))
            first = stop + 1
        yield index, (begin, on - 1), items


def _outer(tokens: Sequence[Token], first: int, words: Sequence[str]) -> int:
    """The first token from ``first`` on, outside of brackets, that is one of ``words``.

    Else the end of the brackets that ``first`` is inside of, or of the text.
    """
    depth = 0
    for index in range(first, len(tokens)):
        word = tokens[index].word
        if depth == 0 and (word in CLOSING or word == ";" or word in words):
            return index
        depth += (word in OPENING) - (word in CLOSING)
    return len(tokens)


def _queries_before(tokens: Sequence[Token], place: int) -> tuple[list[tuple[int, int]], bool]:
    """The queries of each WITH that a source at ``place`` may name; whether one is RECURSIVE."""
    found: dict[str, tuple[int, int]] = {}
    is_recursive = False
    # The brackets around the place, from outside in, each with its first token.
    begins = [0]
    for index in range(place):
        if tokens[index].word in OPENING:
            begins.append(index + 1)
        elif tokens[index].word in CLOSING and len(begins) > 1:
            begins.pop()
    for begin in begins:
        first = _outer(tokens, begin, ("WITH",)) + 1
        if first >= place or tokens[first - 1].word != "WITH" or tokens[first].text == "(":
            continue
        if tokens[first].word == "RECURSIVE":
            is_recursive, first = True, first + 1
        while first < place:
            opening = _outer(tokens, first, ("AS",)) + 1
            while opening < place and tokens[opening].text != "(":
                opening += 1  # AS [NOT] MATERIALIZED (
            closing = _outer(tokens, opening + 1, ())
            if closing >= place:
                break
            found[tokens[first].text.lower()] = tokens[first].start, tokens[closing].stop
            if tokens[closing + 1].text != ",":
                break
            first = closing + 2
    return list(found.values()), is_recursive
