"""``GROUP BY a, GROUPING SETS (…)``, whose comma sqlglot before 30 forgets.

With a comma each set has ``a``, too; without one, as Spark and Hive write it, ``a`` names a key
that the sets use.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from icesql.sql.positions import unsupported

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
