"""Write a tree as SQL text, however deep its chains are."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from icesql.sql.parser.releases.newest import prepare_to_write
from icesql.sql.positions import unsupported

# sqlglot's generator takes about five of Python's 1,000 stack frames for each level.
_MOST_LEVELS: Final = 60


# Key in the ``meta`` of the root of a tree that was translated from another dialect.
TRANSLATED: Final = "translated"


def write_sql(tree: exp.Expr, dialect: str) -> str:
    """Return the SQL of ``tree``; may change the tree.

    Raises UnsupportedSqlError for a translated tree with a node that ``dialect`` cannot express.
    """
    prepare_to_write(tree)
    level = ErrorLevel.RAISE if tree.meta.get(TRANSLATED) else ErrorLevel.IGNORE
    write = partial(tree.sql, dialect=dialect, unsupported_level=level, comments=False)
    try:
        return str(write())
    except RecursionError:
        _shorten(tree, dialect)
        return str(write())
    except UnsupportedError as error:
        raise unsupported(f"this translation ({error})", None) from error


def _shorten(tree: exp.Expr, dialect: str) -> None:
    """Replace deep operands, innermost first, by nodes that hold their SQL text."""
    heights: dict[int, int] = {}
    for node in reversed(list(tree.dfs())):
        height = 1 + max((heights[id(each)] for each in node.iter_expressions()), default=0)
        if isinstance(node, exp.Connector):
            # The generator writes chains of connectors without recursion.
            height -= isinstance(node.parent, exp.Connector)
        elif height >= _MOST_LEVELS and isinstance(node, exp.Binary | exp.Unary | exp.Func):
            text = exp.Var(
                this=node.sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE, comments=False)
            )
            node.replace(text)
            heights[id(text)] = 1
            continue
        heights[id(node)] = height
