"""How deep SQL is nested, measured before anything walks it by recursion.

sqlglot's parser takes 20 to 30 Python frames for a level of brackets, DuckDB gives up at 1,000
levels of an expression. What is too deep for them is a syntax error at its place in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icesql.errors import SqlSyntaxError
from icesql.sql.lexer import MOST_LEVELS, Token, too_deep
from icesql.sql.positions import syntax_error
from icesql.sql.trees import exp

# Levels that every thread has room for.
_SHALLOW: Final = 6
# DuckDB's own limit is 1,000 with what it puts around an expression.
MOST_TERMS: Final = 950
MOST_BRANCHES: Final = 1_000
MOST_CTES: Final = 900

_OPENING: Final = frozenset({"(", "[", "{", "CASE"})
_CLOSING: Final = frozenset({")", "]", "}", "END"})
_PREFIXES: Final = frozenset({"NOT", "-", "+", "~"})
_SHORTER: Final = (
    "join texts with concat(…), add numbers with list_sum([…]), and compare with many values by "
    "IN (…)"
)


def nesting(tokens: Sequence[Token]) -> int:
    """How many levels deep brackets and CASE are nested, prefixes such as NOT NOT included.

    Raises SqlSyntaxError where they are more than any part of the way takes.
    """
    deepest = depth = prefixes = 0
    for token in tokens:
        kind = token.word
        if kind in _PREFIXES:
            prefixes += 1
        else:
            prefixes = 0
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth = max(depth - 1, 0)
        if depth > MOST_LEVELS or prefixes > MOST_LEVELS:
            raise too_deep(token.start)
        deepest = max(deepest, depth, prefixes)
    return deepest


def deepest_token(tokens: Sequence[Token]) -> int:
    """The offset at which the nesting is first as deep as it gets."""
    depth = deepest = 0
    offset = tokens[0].start
    for token in tokens:
        if token.word in _OPENING:
            depth += 1
            if depth > deepest:
                deepest, offset = depth, token.start
        elif token.word in _CLOSING:
            depth -= 1
    return offset


def too_many_terms(tokens: Sequence[Token]) -> SqlSyntaxError:
    """The error for an expression of which DuckDB's parser says that it is too deep."""
    problem = f"an expression of more than {MOST_TERMS} parts; {_SHORTER}"
    return syntax_error(problem, deepest_token(tokens))


def check_depth(tree: exp.Expr) -> None:
    """Refuse chains that are deeper than the engine takes: of ``||``, ``+``, UNION, and CTEs.

    AND and OR are flat to the engine, however many terms they have. Raises SqlSyntaxError.
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


def is_shallow(levels: int) -> bool:
    """Whether this many levels fit on the caller's stack."""
    return levels <= _SHALLOW
