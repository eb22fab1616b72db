"""Entry point of this package: make any release parse tokens as the newest one does."""

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
    """Return the tokens to parse, and a function to apply to each tree parsed from them.

    Raises UnsupportedSqlError for SQL that only a newer release parses correctly.
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
    # Texts in DuckDB's dialect run unchanged, and DuckDB's tree is compared with sqlglot's.
    is_named = any(token.token_type == TokenType.IS for token in tokens)
    if "DuckDB" not in kinds and is_named and not ranks_is():
        mend = _both(mend, check_is)
    return tokens, mend


def respelt(token: Token, kind: TokenType, text: str) -> Token:
    """Return another token at the place of this one."""
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _both(first: Mend, second: Mend) -> Mend:
    return lambda tree: second(first(tree))


def _not_like(tokens: list[Token]) -> list[Token]:
    """Rewrite ``a NOT LIKE ALL (…)`` for older sqlglot, which reads it as NOT (a LIKE ALL (…)).

    It is true if a matches no pattern: NOT (a LIKE ANY (…)). Likewise ``a NOT LIKE ANY (…)`` means
    NOT (a LIKE ALL (…)).
    """
    made = list(tokens)
    for at in range(2, len(made)):
        first, like, word = (each.token_type for each in made[at - 2 : at + 1])
        if first == TokenType.NOT and like in _LIKES and word in _OF_LISTS:
            if _keeps_not(made[at - 1].text):
                continue
            kind = TokenType.ANY if word == TokenType.ALL else TokenType.ALL
            made[at] = respelt(made[at], kind, kind.name)
    return made


def _found(sql: str, *kinds: type[exp.Expr]) -> exp.Expr:
    """Return the first node of a kind that this release reads in a text."""
    (tree,) = Dialect().parse(sql)
    return (tree and tree.find(*kinds)) or exp.Null()


@functools.cache
def _keeps_not(word: str) -> bool:
    """True if trees record NOT in the LIKE or ILIKE node, not in a Not node around it."""
    found = _found(f"SELECT a NOT {word} ALL ('b')", exp.Like, exp.ILike)
    return bool(found.args.get("negate"))


def prepare_to_write(tree: Any) -> None:
    """Change a tree so that its text is the one that the newest release would write."""
    if TokenType.MOD not in Parser.FACTOR:
        from icesql.sql.parser.releases.remainders import in_parentheses

        in_parentheses(tree)


def _as_it_is(tree: Any) -> Any:
    return tree


# ``a = b IS NULL``: releases of sqlglot disagree on the operand of IS without parentheses.
#
# Newer releases follow each dialect. Older ones read ``a = (b IS NULL)``, and write a text that
# DuckDB reads as ``(a = b) IS NULL``. With an older release such a statement is refused.

_IS: Final = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike,
    exp.In, exp.Between, exp.Escape, *_IS,
)  # fmt: skip


@functools.cache
def ranks_is() -> bool:
    """True if this release follows the dialect in choosing the operand of IS."""
    return not isinstance(_found("SELECT a = b IS NULL", exp.Is).parent, exp.EQ)


def check_is(tree: Any) -> Any:
    """Return the tree. Raises UnsupportedSqlError for an IS beside another comparison."""
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


# ``GROUP BY a, GROUPING SETS (…)``: sqlglot before 30 drops the comma.
#
# With the comma, ``a`` is part of each set. Without it, as in Spark and Hive, ``a`` names a key
# that the sets use.

_AT_BEGINNING: Final = frozenset({TokenType.GROUP_BY, TokenType.L_PAREN, TokenType.COMMA})


def has_keys(tokens: Sequence[Token]) -> bool:
    """True if GROUPING SETS follow a comma that this release drops.

    Raises UnsupportedSqlError if the statement also has GROUPING SETS without a comma.
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
    """Return the tree with its grouping sets among the other keys of GROUP BY."""
    for group in tree.find_all(exp.Group) if tree is not None else ():
        if group.expressions and group.args.get("grouping_sets"):
            group.set("expressions", [*group.expressions, *group.args["grouping_sets"]])
            group.set("grouping_sets", None)
    return tree


@functools.cache
def _keeps_commas() -> bool:
    group = _found("SELECT 1 FROM t GROUP BY a, GROUPING SETS ((b), (c))", exp.Group)
    return not group.args.get("grouping_sets")
