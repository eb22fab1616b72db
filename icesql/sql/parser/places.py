"""Where parts of a query stand in its text, as far as the tokens say more than sqlglot's tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from sqlglot import exp

from icesql.sql.lexer import CLOSING, OPENING, Token
from icesql.sql.positions import offset_of

_ENDS: Final = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "QUALIFY"}
    | {"ORDER", "LIMIT", "OFFSET", "FETCH", "UNION"}
    | {"EXCEPT", "INTERSECT", "WINDOW", "USING", "INTO"}
)


class _List(Struct):
    """A select list while its tokens pass: where its column begins, and those that are whole."""

    start: int | None = None
    end: int = 0


def place_nodes(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Note in ``tree`` where columns of select lists begin and end.

    ``meta`` of a column gets ``place``, and of the first of the columns that a star leaves out
    ``place`` and ``in_list``, whether it stands in parentheses.
    """
    starts = [token.start for token in tokens]
    selects = []
    for node in tree.walk():
        if isinstance(node, exp.Select):
            selects.append(node)
        elif isinstance(node, exp.Star) and node.args.get("except_"):
            _place_left_out(node, tokens, starts)
    columns = _by_depth(select_columns(tokens))
    for select in selects:
        begins, items, reached = columns.get(_depth(select), ([], [], []))
        for node in select.expressions:
            start = offset_of(node)
            if start is None:
                continue
            last = bisect_right(begins, start) - 1
            # Not where two are around it, or none.
            if last >= 0 and reached[last] <= start < items[last][1]:
                node.meta["place"] = items[last]


_Items = tuple[list[int], list[tuple[int, int]], list[int]]


def _by_depth(columns: Sequence[tuple[int, int, int]]) -> dict[int, _Items]:
    """The items of each depth in order: their begins, they, and where all before them end."""
    found: dict[int, _Items] = {}
    for begin, end, depth in sorted(columns):
        begins, items, reached = found.setdefault(depth, ([], [], []))
        reached.append(max(reached[-1], items[-1][1]) if items else 0)
        begins.append(begin)
        items.append((begin, end))
    return found


def _depth(select: exp.Select) -> int:
    """In how many columns of other select lists it stands."""
    depth = 0
    node: exp.Expr = select
    while node.parent is not None:
        depth += isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        node = node.parent
    return depth


def select_columns(tokens: Sequence[Token]) -> list[tuple[int, int, int]]:
    """Begin, end and depth of each item of the select lists."""
    found: list[tuple[int, int, int]] = []
    open_lists: list[_List | None] = [None]

    def end_item() -> None:
        current = open_lists[-1]
        if current is not None and current.start is not None:
            depth = sum(each is not None and each.start is not None for each in open_lists[:-1])
            found.append((current.start, current.end, depth))
            current.start = None

    skip_to = 0
    for index, token in enumerate(tokens):
        kind = token.word
        current = open_lists[-1]
        if kind in OPENING:
            _extend(current, token)
            open_lists.append(None)
            continue
        if kind in CLOSING:
            end_item()
            if len(open_lists) > 1:
                open_lists.pop()
            _extend(open_lists[-1], token)
            continue
        if kind == "SELECT":
            open_lists[-1] = _List()
            skip_to = _first_column(tokens, index + 1)
        elif index < skip_to:
            pass
        elif current is not None and kind == ",":
            end_item()
        elif current is not None and kind in _ENDS and not _is_distinct_from(tokens, index):
            end_item()
            open_lists[-1] = None
        else:
            _extend(current, token)
    while open_lists:
        end_item()
        open_lists.pop()
    return found


def _extend(current: _List | None, token: Token) -> None:
    if current is None:
        return
    if current.start is None:
        current.start = token.start
    current.end = max(current.end, token.stop)


def _first_column(tokens: Sequence[Token], index: int) -> int:
    """The first token after SELECT that is part of a column."""
    if index < len(tokens) and tokens[index].word in ("DISTINCT", "ALL"):
        index += 1
    return index


def _is_distinct_from(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index].word == "FROM" and (tokens[index - 1].word == "DISTINCT")


def _place_left_out(star: exp.Star, tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """``* EXCLUDE (a, b)`` and ``* EXCLUDE a``."""
    start = star.meta.get("start")
    if start is None:
        return
    index = bisect_right(starts, start) + 1  # after the star and EXCLUDE
    in_list = tokens[index].word == "("
    first = last = index + in_list
    while last + 2 < len(tokens) and tokens[last + 1].word == ".":
        last += 2
    given = star.args["except_"][0]
    given.meta["place"] = (tokens[first].start, tokens[last].stop)
    given.meta["in_list"] = in_list
