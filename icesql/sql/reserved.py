"""Words that icesql's own dialect cannot read as the name of a column, but in double quotes."""

from __future__ import annotations

import functools
import re
from typing import Final

from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
from icesql.sql.grammar import folder

# These are more often a slip than a column: they need a second one that is no column.
_CLAUSES: Final = frozenset(
    {"select", "from", "where", "as", "on", "and", "or", "not", "limit", "for"}
)
_MOST_TOKENS: Final = 500


@functools.cache
def reserved() -> frozenset[str]:
    """These words in lower case, read from ``grammar/``."""
    text = (folder() / "reserved.txt").read_text(encoding="utf-8")
    return frozenset(re.sub(r"(?m)^#.*", "", text).split())


def check_name(name: str, offset: int | None, sql: str) -> None:
    """Raise UnsupportedSqlError for a new column of a reserved word that stands without quotes."""
    if offset is None or name.lower() not in reserved() or not sql[offset : offset + 1].isalpha():
        return
    raise UnsupportedSqlError(
        f"{name} as the name of a column",
        hint=f'it is a word of SQL, and queries need quotes for it: write "{name}", or rename it',
        offset=offset,
    )


def advice_to_quote(error: SqlSyntaxError, sql: str) -> str:
    """The advice to quote a reserved word at or before an error, if the text parses with it."""
    from icesql.sql.parse import parses
    from icesql.sql.parser.dialect import reading, tokenize

    assert error.offset is not None
    try:
        tokens = tokenize(sql, reading(None))
    except Error:
        return ""
    if len(tokens) > _MOST_TOKENS:
        return ""
    before = [each for each in tokens if each.start <= error.offset][-2:]
    for token in reversed(before):
        word = token.text.lower()
        same = [each for each in tokens if each.text.lower() == word and _is_bare(each.start, sql)]
        if word not in reserved() or token not in same:
            continue
        # Of these only one that begins the list of columns, or follows another column.
        behind = sql[: token.start].rstrip()[-6:].lower()
        if word in _CLAUSES and not behind.endswith((",", "(", "select")):
            continue
        if word in _CLAUSES and len(same) < 2:
            continue
        for places in ([each.start for each in same], [token.start]):
            text, added = sql, 0
            for place in places:
                end = place + added + len(word)
                text = f'{text[: place + added]}"{text[place + added : end]}"{text[end:]}'
                added += 2
            if parses(text):
                return f'a column of the name {token.text}, a word of SQL, is "{token.text}"'
    return ""


def _is_bare(offset: int, sql: str) -> bool:
    return sql[offset : offset + 1].isalpha()
