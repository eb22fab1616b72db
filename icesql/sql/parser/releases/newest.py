"""The door of this room: tokens that any release reads as the newest one does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import unsupported

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
    if any(token.token_type == TokenType.GROUPING_SETS for token in tokens) and has_keys(tokens):
        mend = _both(mend, as_keys)
    kinds = {each.__name__ for each in type(dialect).__mro__}
    # DuckDB's own words run as they are, and its tree is compared with sqlglot's.
    is_named = any(token.token_type == TokenType.IS for token in tokens)
    if "DuckDB" not in kinds and is_named and not ranks_is():
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


# ``a = b IS NULL``: what IS belongs to without parentheses, which releases of sqlglot disagree on.
#
# Newer ones follow each dialect. Older ones read ``a = (b IS NULL)``, and write words that DuckDB
# reads as ``(a = b) IS NULL``. There it is refused.

_IS: Final = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike,
    exp.In, exp.Between, exp.Escape, *_IS,
)  # fmt: skip


@functools.cache
def ranks_is() -> bool:
    """Whether this release says in its trees what IS belongs to."""
    (tree,) = Dialect().parse("SELECT a = b IS NULL")
    found = tree.find(exp.Is) if tree is not None else None
    return found is not None and not isinstance(found.parent, exp.EQ)


def check_is(tree: Any) -> Any:
    """The tree. Raises UnsupportedSqlError for an IS beside another comparison."""
    for node in tree.find_all(*_IS) if tree is not None else ():
        around = node.parent
        while isinstance(around, exp.Not):
            around = around.parent
        beside = node.this
        while isinstance(beside, exp.Not):
            beside = beside.this
        if isinstance(around, _COMPARISONS) or isinstance(beside, _COMPARISONS):
            hint = "put one of them in parentheses, or install a newer sqlglot"
            raise unsupported("IS beside another comparison", node, hint)
    return tree


# ``GROUP BY a, GROUPING SETS (…)``, whose comma sqlglot before 30 forgets.
#
# With a comma each set has ``a``, too; without one, as Spark and Hive write it, ``a`` names a key
# that the sets use.

_AT_BEGINNING: Final = frozenset({TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.COMMA})


def has_keys(tokens: Sequence[Token]) -> bool:
    """Whether sets stand behind a comma, and this release forgets it.

    Raises UnsupportedSqlError where others of the statement have none.
    """
    places = [
        at for at, token in enumerate(tokens) if at and token.token_type == TokenType.GROUPING_SETS
    ]
    behind = [at for at in places if tokens[at - 1].token_type == TokenType.COMMA]
    if not behind or _keeps_commas():
        return False
    if any(tokens[at - 1].token_type not in _AT_BEGINNING for at in places):
        hint = "write both with commas, or install a newer sqlglot"
        raise unsupported("GROUPING SETS with and without a comma", tokens[behind[0]].start, hint)
    return True


def as_keys(tree: Any) -> Any:
    """The tree whose sets are keys of their GROUP BY, as the others are."""
    for group in tree.find_all(exp.Group) if tree is not None else ():
        if group.expressions and group.args.get("grouping_sets"):
            group.set("expressions", [*group.expressions, *group.args["grouping_sets"]])
            group.set("grouping_sets", None)
    return tree


@functools.cache
def _keeps_commas() -> bool:
    (tree,) = Dialect().parse("SELECT 1 FROM t GROUP BY a, GROUPING SETS ((b), (c))")
    group = tree.find(exp.Group) if tree is not None else None
    return group is not None and not group.args.get("grouping_sets")
