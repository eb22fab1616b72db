"""Words that icesql's own dialect cannot read as the name of a column, but in double quotes."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final

from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
from icesql.sql.grammar import folder

if TYPE_CHECKING:
    from icesql.sql.lexer import Token

# These are more often a slip than a column: they need a second one that is no column.
_CLAUSES: Final = frozenset(
    {"select", "from", "where", "as", "on", "and", "or", "not", "limit", "for"}
)
# What a column follows, of those that such a word follows as a clause nowhere.
_BEFORE_COLUMNS: Final = (",", "(", "select", "where", "and", "or", "not", "by", "on")
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
    from icesql.sql.lexer import reading, tokenize
    from icesql.sql.parse import parses

    assert error.offset is not None
    try:
        tokens = tokenize(sql, reading(None))
    except Error:
        return ""
    if len(tokens) > _MOST_TOKENS:
        return ""
    bare = [
        each
        for each, after in zip(tokens, [*tokens[1:], None], strict=True)
        if each.text.lower() in reserved() and _is_bare(each, sql)
        # GROUP BY, not a column named so.
        if each.word != "BY" and (after is None or after.word != "BY")
    ]
    columns = [
        each
        for left, each in itertools.pairwise(tokens)
        if each in bare and _is_column(left.text.lower(), each.text.lower())
    ]
    before = [each for each in tokens if each.start <= error.offset][-2:]
    for token in reversed(before):
        word = token.text.lower()
        same = [each for each in bare if each.text.lower() == word]
        if token not in columns or (word in _CLAUSES and len(same) < 2):
            continue
        for quoted in (same, [token], columns):
            text = sql
            for each in reversed(quoted):
                start, end = each.start, each.start + len(each.text)
                text = f'{text[:start]}"{text[start:end]}"{text[end:]}'
            if parses(text):
                return f'a column of the name {token.text}, a word of SQL, is "{token.text}"'
    return ""


def _is_bare(token: Token, sql: str) -> bool:
    return sql[token.start : token.start + 1].isalpha()


def _is_column(left: str, word: str) -> bool:
    """Whether a reserved word is where a column may be; a slip of a clause seldom is."""
    return word not in _CLAUSES or (word != "select" and left in _BEFORE_COLUMNS)
