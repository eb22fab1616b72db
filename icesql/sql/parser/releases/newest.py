"""The door of this room: tokens that any release reads as the newest one does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

_LIKES: Final = (TokenType.LIKE, TokenType.ILIKE)
_OF_LISTS: Final = (TokenType.ANY, TokenType.ALL, TokenType.SOME)

Mend = Callable[[Any], Any]


def as_newest(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], Mend]:
    """The tokens to parse, and what has to be done with each tree of theirs.

    Raises UnsupportedSqlError for what only a newer release reads rightly.
    """
    mend: Mend = _as_it_is
    if any(token.token_type in _OF_LISTS for token in tokens):
        tokens = _not_like(tokens)
    if TokenType.MOD not in Parser.FACTOR:
        from icesql.sql.parser.releases.remainders import as_products, has_remainders, remainders

        if has_remainders(tokens):
            tokens, mend = as_products(tokens), remainders
    if any(token.token_type == TokenType.GROUPING_SETS for token in tokens):
        from icesql.sql.parser.releases.grouping import as_keys, has_keys

        if has_keys(tokens):
            mend = _both(mend, as_keys)
    kinds = {each.__name__ for each in type(dialect).__mro__}
    # DuckDB's own words run as they are, and its tree is compared with sqlglot's.
    if "DuckDB" not in kinds and any(token.token_type == TokenType.IS for token in tokens):
        from icesql.sql.parser.releases.comparisons import check_is, ranks_is

        if not ranks_is():
            mend = _both(mend, check_is)
    return tokens, mend


def _both(first: Mend, second: Mend) -> Mend:
    return lambda tree: second(first(tree))


def _not_like(tokens: list[Token]) -> list[Token]:
    """``a NOT LIKE ALL (…)`` is true where a is like none; older sqlglot: where not like all.

    It is NOT (a LIKE ANY (…)), and NOT LIKE ANY is NOT (a LIKE ALL (…)).
    """
    made = list(tokens)
    for at in range(2, len(made)):
        first, like, word = (each.token_type for each in made[at - 2 : at + 1])
        if first == TokenType.NOT and like in _LIKES and word in _OF_LISTS:
            if _keeps_not(made[at - 1].text):
                continue
            kind = TokenType.ANY if word == TokenType.ALL else TokenType.ALL
            given = made[at]
            made[at] = Token(
                kind, kind.name, given.line, given.col, given.start, given.end, given.comments
            )
    return made


@functools.cache
def _keeps_not(like: str) -> bool:
    """Whether NOT stands at the LIKE or ILIKE in trees, and not around it."""
    (tree,) = Dialect().parse(f"SELECT a NOT {like} ALL ('b')")
    found = tree.find(exp.Like, exp.ILike) if tree is not None else None
    return found is not None and bool(found.args.get("negate"))


def prepare_to_write(tree: Any) -> None:
    """Make the text of a tree the one that the newest release would write."""
    if TokenType.MOD not in Parser.FACTOR:
        from icesql.sql.parser.releases.remainders import in_parentheses

        in_parentheses(tree)


def _as_it_is(tree: Any) -> Any:
    return tree
