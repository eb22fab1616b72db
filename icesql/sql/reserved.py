"""Words that icesql's own dialect reads as a column name only in double quotes."""

from __future__ import annotations

import itertools
from typing import Final

from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
from icesql.sql.keywords import NO_COLUMN, word_set

# Usually a mistake, not a column: these need a second occurrence that is not a column.
_CLAUSES: Final = word_set("select from where as on and or not limit for")
# Words before a column, except those that may also precede such a word as a clause.
_BEFORE_COLUMNS: Final = word_set(", ( select where and or not by on")
_MOST_TOKENS: Final = 500


def check_name(name: str, offset: int | None, sql: str) -> None:
    """Raise UnsupportedSqlError for a new column with a reserved word as its unquoted name."""
    if offset is None or name.lower() not in NO_COLUMN or not sql[offset : offset + 1].isalpha():
        return
    raise UnsupportedSqlError(
        f"{name} as the name of a column",
        hint=f'it is a word of SQL, and queries need quotes for it: write "{name}", or rename it',
        offset=offset,
    )


def advice_to_quote(error: SqlSyntaxError, sql: str) -> str:
    """Return advice to quote a reserved word at or before an error, if the text then parses."""
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
        if each.text.lower() in NO_COLUMN and sql[each.start : each.start + 1].isalpha()
        # GROUP BY, not a column of this name.
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


def _is_column(left: str, word: str) -> bool:
    """True if a reserved word is at a place for a column; a misplaced clause seldom is."""
    return word not in _CLAUSES or (word != "select" and left in _BEFORE_COLUMNS)
