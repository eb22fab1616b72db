"""Measure how deeply SQL is nested before anything recurses into it, and where its parts are.

sqlglot's parser takes 20 to 30 Python frames for a level of brackets; DuckDB gives up at 1,000
levels of an expression. Deeper nesting is a syntax error with its offset in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from icesql.errors import SqlSyntaxError
from icesql.sql.keywords import word_set
from icesql.sql.lexer import CLOSING, MOST_LEVELS, OPENING, Span, Token, Tokens, too_deep
from icesql.sql.positions import offset_of, syntax_error
from icesql.sql.trees import exp

# Levels that fit on the stack of every thread.
SHALLOW: Final = 6
# DuckDB's own limit is 1,000, including the nodes that it puts around an expression.
MOST_TERMS: Final = 950
MOST_BRANCHES: Final = 1_000
MOST_CTES: Final = 900

_OPENING: Final = word_set("( [ { CASE")
_CLOSING: Final = word_set(") ] } END")
_PREFIXES: Final = word_set("NOT - + ~")
_SHORTER: Final = (
    "join texts with concat(…), add numbers with list_sum([…]), and compare with many values by "
    "IN (…)"
)


def nesting(tokens: Tokens) -> Span:
    """Return the depth of nested brackets and CASE, or of repeated prefixes such as NOT NOT, and
    the offset of the deepest bracket.

    Raises SqlSyntaxError if the depth exceeds ``MOST_LEVELS``.
    """
    deepest = depth = prefixes = most = 0
    offset = tokens[0].start
    for token in tokens:
        kind = token.word
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if kind in _OPENING:
            depth += 1
            if depth > deepest:
                deepest, offset = depth, token.start
        elif kind in _CLOSING:
            depth = max(depth - 1, 0)
        if depth > MOST_LEVELS or prefixes > MOST_LEVELS:
            raise too_deep(token.start)
        most = max(most, prefixes)
    return max(deepest, most), offset


def too_many_terms(tokens: Tokens) -> SqlSyntaxError:
    """Return the error for an expression that DuckDB's parser reports as too deep."""
    problem = f"an expression of more than {MOST_TERMS} parts; {_SHORTER}"
    return syntax_error(problem, nesting(tokens)[1])


def check_depth(tree: exp.Expr) -> None:
    """Refuse chains that are longer than the engine accepts: of ``||``, ``+``, UNION, and CTEs.

    The engine flattens AND and OR, whatever the number of terms. Raises SqlSyntaxError.
    """
    stack: list[tuple[exp.Expr, int, int]] = [(tree, 0, 0)]
    while stack:
        node, terms, branches = stack.pop()
        if isinstance(node, exp.SetOperation):
            terms, branches = 0, branches + 1
            if branches >= MOST_BRANCHES:
                raise _too_long(
                    node, "UNION, EXCEPT or INTERSECT", MOST_BRANCHES,
                    "read the values from one table or VALUES, or run several statements",
                )  # fmt: skip
        elif isinstance(node, exp.Query):
            terms = branches = 0
        elif isinstance(node, exp.With) and len(node.expressions) > MOST_CTES:
            raise _too_long(
                node, "WITH", MOST_CTES, "name parts of the statement only where it helps"
            )
        elif isinstance(node, exp.Condition) and not isinstance(node, exp.And | exp.Or):
            terms += 1
            if terms > MOST_TERMS:
                raise _too_long(node, f"an expression ({_operator(node)})", MOST_TERMS, _SHORTER)
        stack.extend((child, terms, branches) for child in node.iter_expressions())


def _operator(node: exp.Expr) -> str:
    while node.parent is not None and not isinstance(node, exp.Binary | exp.Func):
        node = node.parent
    return {"DPipe": "||", "Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}.get(
        type(node).__name__, type(node).__name__.upper()
    )


def _too_long(node: exp.Expr, what: str, most: int, cure: str) -> Exception:
    offset = next((int(each.meta["start"]) for each in node.walk() if "start" in each.meta), None)
    return syntax_error(f"{what} of more than {most} parts; {cure}", offset)


# Offsets of the parts of a query, which the tokens give more exactly than sqlglot's tree.

_ENDS: Final = word_set(
    "FROM WHERE GROUP HAVING QUALIFY ORDER LIMIT OFFSET FETCH UNION EXCEPT INTERSECT WINDOW "
    "USING INTO"
)


class _List(Struct):
    """A select list while it is scanned: start and end of its current item."""

    start: int | None = None
    end: int = 0


def place_nodes(tree: exp.Expr, tokens: Tokens) -> None:
    """Record in ``tree`` where the columns of select lists begin and end.

    The ``meta`` of a column gets ``place``. The first column that a star excludes gets ``place``
    and ``in_list``, which is True if the excluded columns are in parentheses.
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
            # No place if the node lies in two items, or in none.
            if last >= 0 and reached[last] <= start < items[last][1]:
                node.meta["place"] = items[last]


_Items = tuple[list[int], list[Span], list[int]]


def _by_depth(columns: Sequence[tuple[int, int, int]]) -> dict[int, _Items]:
    """The items of each depth in order: their starts, their spans, the end of all before each."""
    found: dict[int, _Items] = {}
    for begin, end, depth in sorted(columns):
        begins, items, reached = found.setdefault(depth, ([], [], []))
        reached.append(max(reached[-1], items[-1][1]) if items else 0)
        begins.append(begin)
        items.append((begin, end))
    return found


def _depth(select: exp.Select) -> int:
    """The number of select list items of outer queries that contain ``select``."""
    depth = 0
    node: exp.Expr = select
    while node.parent is not None:
        depth += isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        node = node.parent
    return depth


def select_columns(tokens: Tokens) -> list[tuple[int, int, int]]:
    """Return start, end and depth of each item of the select lists."""
    found: list[tuple[int, int, int]] = []
    open_lists: list[_List | None] = [None]

    def end_item() -> None:
        current = open_lists[-1]
        if current is not None and current.start is not None:
            depth = sum(each is not None and each.start is not None for each in open_lists[:-1])
            found.append((current.start, current.end, depth))
            current.start = None

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
        elif kind in ("DISTINCT", "ALL") and tokens[index - 1].word == "SELECT":
            pass
        elif current is not None and kind == ",":
            end_item()
        elif current is not None and kind in _ENDS and tokens[index - 1].word != "DISTINCT":
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


def _place_left_out(star: exp.Star, tokens: Tokens, starts: Sequence[int]) -> None:
    """Record the place of the columns in ``* EXCLUDE (a, b)`` or ``* EXCLUDE a``."""
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
