"""A sort order as a text: ``a DESC NULLS LAST, bucket(4, b)``, or ``zorder(a, b)``."""

from __future__ import annotations

from msgspec import Struct

from icesql.errors import ProgrammingError
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import reading, tokenize
from icesql.sql.writes.definitions import read_ordering
from icesql.sql.writes.statements import SortTerm


class SortText(Struct, frozen=True):
    """The terms of an order, or the columns of a z-order."""

    terms: tuple[SortTerm, ...] = ()
    z_columns: tuple[str, ...] = ()


def read_sort_text(text: str) -> SortText:
    """Read a sort order from a text; errors have offsets in this text.

    Raises SqlSyntaxError, and ProgrammingError for a Hilbert curve or a z-order beside other terms.
    """
    words = TokenCursor(tokenize(text, reading(None)), text)
    if not words.tokens:
        raise ProgrammingError("it is empty")
    if words.comes("HILBERT ("):
        raise ProgrammingError("hilbert(…) is not here; zorder(…) keeps neighbours together, too")
    if words.comes("ZORDER ("):
        words.index += 1
        names = words.bracketed(TokenCursor.column)
        if words.token is not None:
            raise ProgrammingError(
                "zorder(…) has to be alone in sort_order: no other column comes before or after it"
            )
        return SortText(z_columns=tuple(names))
    terms = read_ordering(words)
    words.end()
    return SortText(terms)
