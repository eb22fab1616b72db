"""The table that a statement writes to, and its branch in every spelling that reads one."""

from __future__ import annotations

from typing import Final

from icesql.sql.cursor import Words
from icesql.sql.lexer import NUMBER, TEXT
from icesql.sql.positions import unsupported
from icesql.sql.writes.statements import TableName

_HINT: Final = "rows are written to a branch: VERSION AS OF 'branch'"


def read_target(words: Words) -> TableName:
    """``t``, ``t VERSION AS OF 'b'``, ``t FOR SYSTEM_VERSION AS OF 'b'``, ``t@b``,
    ``t @ BRANCH b``, ``t AT (BRANCH => 'b')`` or ``t AT BRANCH b``.

    ``t.branch_b`` is told apart when the table is looked up. Raises SqlSyntaxError, and
    UnsupportedSqlError for a snapshot or a time.
    """
    at = words.here
    return TableName(words.name("a table"), at, _branch(words))


def _branch(words: Words) -> str | None:
    if words.skip("@"):
        words.skip("BRANCH")
        return _name(words)
    start, at = words.index, words.here
    words.skip("FOR")
    if words.skip("VERSION", "AS", "OF") or words.skip("SYSTEM_VERSION", "AS", "OF"):
        return _name(words)
    for kind in ("TIMESTAMP", "SYSTEM_TIME"):
        if words.skip(kind, "AS", "OF"):
            raise unsupported("writing to the past of a table", at, _HINT)
    words.index = start
    if words.skip("AT", "(") or words.skip("AT"):
        in_brackets = words.tokens[words.index - 1].text == "("
        if not any(words.skip(kind) for kind in ("BRANCH", "VERSION", "REF", "REFERENCE")):
            raise unsupported("writing to the past of a table", at, _HINT)
        if in_brackets:
            words.need("=>")
        found = _name(words)
        if in_brackets:
            words.need(")")
        return found
    return None


def _name(words: Words) -> str:
    token = words.token
    if token is None or token.kind == NUMBER:
        raise unsupported("writing to a snapshot", words.here, _HINT)
    if token.kind == TEXT:
        return words.text()
    return words.identifier("the name of a branch")
