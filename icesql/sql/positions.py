"""Errors with their place in the SQL text: at a node, a token or an offset.

``placing(sql)`` around the work converts the offset into a line and a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from icesql.errors import SqlSyntaxError, UnsupportedSqlError

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.sql.lexer import Token

    Place: TypeAlias = "exp.Expr | Token | int | None"


def unsupported(construct: str, at: Place, hint: str = "") -> UnsupportedSqlError:
    """Return an UnsupportedSqlError at a node, a token or a character offset."""
    return UnsupportedSqlError(construct, hint=hint, offset=offset_of(at))


def of_files(construct: str, at: Place, hint: str) -> UnsupportedSqlError:
    """Return the error for SQL that reads or writes files, which a service reports differently."""
    error = unsupported(construct, at, hint)
    error.of_files = True
    return error


def syntax_error(problem: str, at: Place, expected: tuple[str, ...] = ()) -> SqlSyntaxError:
    """Return a SqlSyntaxError at a node, a token or a character offset."""
    return SqlSyntaxError(problem, expected=expected, offset=offset_of(at))


def first_offset(node: exp.Expr) -> int | None:
    """Return the least character offset that sqlglot recorded below ``node``."""
    starts = [int(inner.meta["start"]) for inner in node.walk() if "start" in inner.meta]
    return min(starts, default=None)


def offset_of(at: Place) -> int | None:
    """Return the character offset of a place; for a node, as far as sqlglot recorded it."""
    if at is None or isinstance(at, int):
        return at
    meta = getattr(at, "meta", None)
    if meta is None:
        return cast("Token", at).start
    at = cast("exp.Expr", at)
    if "start" in meta:
        return int(meta["start"])
    first = first_offset(at)
    if first is not None:
        return first
    parent = at.parent
    while parent is not None:
        if "start" in parent.meta:
            return int(parent.meta["start"])
        parent = parent.parent
    return None
