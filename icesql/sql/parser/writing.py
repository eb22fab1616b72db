"""A tree as SQL text, however deep its chains are."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from icesql.sql.parser.releases.newest import prepare_to_write
from icesql.sql.positions import unsupported

# sqlglot's generator takes about five frames of Python's 1,000 for a level.
_MOST_LEVELS: Final = 60


# The root of a tree that was translated from another dialect has this in its ``meta``.
TRANSLATED: Final = "translated"


def write_sql(tree: exp.Expr, dialect: str) -> str:
    """The SQL of ``tree``, which may be changed by it.

    Raises UnsupportedSqlError where a translated tree holds what ``dialect`` cannot say.
    """
    prepare_to_write(tree)
    level = ErrorLevel.RAISE if tree.meta.get(TRANSLATED) else ErrorLevel.IGNORE
    try:
        return str(tree.sql(dialect=dialect, unsupported_level=level, comments=False))
    except RecursionError:
        _shorten(tree, dialect)
        return str(tree.sql(dialect=dialect, unsupported_level=level, comments=False))
    except UnsupportedError as error:
        raise unsupported(f"this translation ({error})", None) from error


def _shorten(tree: exp.Expr, dialect: str) -> None:
    """Put the text of deep operands, innermost first, in their places."""
    heights: dict[int, int] = {}
    for node in reversed(list(tree.dfs())):
        height = 1 + max((heights[id(each)] for each in node.iter_expressions()), default=0)
        if isinstance(node, exp.Connector):
            # The generator writes these chains without recursion.
            height -= isinstance(node.parent, exp.Connector)
        elif height >= _MOST_LEVELS and isinstance(node, exp.Binary | exp.Unary | exp.Func):
            text = exp.Var(
                this=node.sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE, comments=False)
            )
            node.replace(text)
            heights[id(text)] = 1
            continue
        heights[id(node)] = height
