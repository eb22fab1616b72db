"""ALTER TABLE … ADD, DROP, RENAME and ALTER COLUMN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from icesql.sql.cursor import TokenCursor
from icesql.sql.positions import syntax_error
from icesql.sql.statement import Write
from icesql.sql.writes.definitions import constant_query, read_column, read_type
from icesql.sql.writes.statements import (
    AlterColumns,
    ColumnChange,
    ColumnDefinition,
    SetProperties,
    TableName,
    TypeName,
)

_PLAIN: Final = {
    "DROP NOT NULL": "optional", "SET NOT NULL": "required", "DROP DEFAULT": "default",
}  # fmt: skip


def read_column_changes(words: TokenCursor) -> tuple[ColumnChange, ...] | None:
    """Read column changes after the table's name; None if it is not a change of a column."""
    if words.peek() == "ADD" and words.peek(1) not in ("PARTITION", "CONSTRAINT"):
        words.index += 1
        return _several(words, lambda: _add(words))
    if words.peek() == "DROP" and words.peek(1) in ("COLUMN", "COLUMNS"):
        words.index += 1
        return _several(words, lambda: ColumnChange("drop", words.name("a column")))
    if words.skip("RENAME COLUMN"):
        exists = words.skip("IF EXISTS")
        path = words.name("a column")
        words.need("TO")
        at = words.here
        new = words.identifier("a column")
        return (ColumnChange("rename", path, text=new, lenient=exists, offset=at),)
    if words.peek() in ("ALTER", "CHANGE"):
        words.index += 1
        words.skip("COLUMN")
        exists = words.skip("IF EXISTS")
        return (replace(_alter(words), lenient=exists),)
    return None


def read_comment(words: TokenCursor) -> Write:
    """Read COMMENT ON: ``TABLE t IS 'x'``, ``COLUMN t.a IS 'x'``; NULL removes the comment."""
    if words.peek() not in ("TABLE", "COLUMN"):
        raise words.unexpected("TABLE", "COLUMN")
    is_column = words.peek() == "COLUMN"
    words.index += 1
    at = words.here
    *above, last = words.name("a column" if is_column else "a table")
    if is_column and not above:
        raise syntax_error("a column of no table", at, ("table.column",))
    words.need("IS")
    text = None if words.skip("NULL") else words.text()
    words.end()
    if is_column:
        change = ColumnChange("comment", (last,), text=text or "")
        return AlterColumns(TableName(tuple(above), at), (change,))
    table = TableName((*above, last), at)
    if text is None:
        return SetProperties(table, unset=("comment",), if_exists=True)
    return SetProperties(table, (("comment", text),))


def _several(words: TokenCursor, read: Callable[[], ColumnChange]) -> tuple[ColumnChange, ...]:
    if not words.skip("COLUMNS"):
        words.skip("COLUMN")
    of_all = _unless(words)
    in_brackets = words.skip("(")

    def change() -> ColumnChange:
        lenient = _unless(words) or of_all
        return replace(read(), lenient=lenient)

    return tuple(words.listed(change, ")" if in_brackets else ""))


def _unless(words: TokenCursor) -> bool:
    return words.skip("IF NOT EXISTS") or words.skip("IF EXISTS")


def _add(words: TokenCursor) -> ColumnChange:
    path = words.name("a column")
    words.index -= 1  # the definition begins with the last name
    column = read_column(words)
    place, sibling = _position(words)
    at = column.offset
    return ColumnChange("add", path, column, place=place, sibling=sibling, offset=at)


def _position(words: TokenCursor) -> tuple[str, str]:
    if words.skip("FIRST"):
        return "first", ""
    for word in ("AFTER", "BEFORE"):
        if words.skip(word):
            return word.lower(), words.identifier("a column")
    return "", ""


def _alter(words: TokenCursor) -> ColumnChange:
    path = words.name("a column")
    at = words.here
    if words.skip("TYPE") or words.skip("SET DATA TYPE"):
        return ColumnChange("type", path, ColumnDefinition(path[-1], read_type(words)))
    for phrase, kind in _PLAIN.items():
        if words.skip(phrase):
            return ColumnChange(kind, path)
    if words.skip("SET DEFAULT"):
        query = constant_query(words, words.until())
        shape = ColumnDefinition(path[-1], TypeName(""), default=query, offset=at)
        return ColumnChange("default", path, shape)
    if words.skip("COMMENT"):
        return ColumnChange("comment", path, text=words.text())
    place, sibling = _position(words)
    if place:
        return ColumnChange("move", path, place=place, sibling=sibling)
    raise words.unexpected("TYPE", "SET DEFAULT", "DROP NOT NULL", "COMMENT", "FIRST", "AFTER")
