"""Read a statement that changes tables from its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Token
from icesql.sql.positions import unsupported
from icesql.sql.reserved import check_name
from icesql.sql.statement import Query, TransactionControl, Write
from icesql.sql.writes.alter.columns import read_column_changes, read_comment
from icesql.sql.writes.alter.layout import read_layout
from icesql.sql.writes.alter.refs import read_ref_change, read_ref_in_table
from icesql.sql.writes.changes.delete import read_delete, read_truncate
from icesql.sql.writes.changes.update import read_update
from icesql.sql.writes.copies import is_copy_from
from icesql.sql.writes.create import read_create, read_drop
from icesql.sql.writes.definitions import ReadConstant, read_keys, read_properties
from icesql.sql.writes.overwrites import ReadText
from icesql.sql.writes.procedures.call import constant_query, read_call
from icesql.sql.writes.procedures.maintenance import read_execute, read_form
from icesql.sql.writes.rows import read_copy_from, read_insert
from icesql.sql.writes.statements import (
    AlterColumns,
    CreateTable,
    IfExists,
    RenameTable,
    SetProperties,
    TableName,
)
from icesql.sql.writes.views import read_alter_view, read_create_view, read_drop_view

# BEGIN, COMMIT and ROLLBACK.

WORDS: Final = ("BEGIN", "START", "COMMIT", "ROLLBACK")


def read_transaction(words: TokenCursor, first: str) -> TransactionControl | None:
    """Read the statement after its first word; None for another one that begins with it.

    Raises UnsupportedSqlError for options, including SAVEPOINT.
    """
    if first == "START" and words.peek() != "TRANSACTION":
        return None
    if first == "ROLLBACK" and words.peek() not in ("", "TRANSACTION", "WORK", "TO", "AND"):
        return None
    if words.token is not None and not (words.skip("TRANSACTION") or words.skip("WORK")):
        raise unsupported(f"{first} {words.peek()}".strip(), words.here, f"write {first} alone")
    if words.token is not None:
        raise unsupported(f"{first} TRANSACTION {words.peek()}", words.here, "leave it out")
    match first:
        case "COMMIT":
            return TransactionControl("commit")
        case "ROLLBACK":
            return TransactionControl("rollback")
        case _:
            return TransactionControl("begin")


ReadQuery = Callable[[Sequence[Token]], Query]


def read_write(
    tokens: Sequence[Token],
    sql: str,
    read_query: ReadQuery,
    read_text: ReadText,
    read_alone: ReadText,
) -> Write | None:
    """Read the statement; None for one of another kind that begins with the same word.

    ``read_alone`` accepts no parameters. Raises SqlSyntaxError and UnsupportedSqlError.
    """
    words = TokenCursor(tokens, sql)
    words.index = 1

    def constant(given: Sequence[Token]) -> Query:
        return constant_query(given, read_query)

    match tokens[0].word:
        case "CREATE":
            found: Write | None = read_ref_in_table(words, "CREATE")
            found = found or read_create_view(words, read_alone)
            return found or read_create(words, read_query, constant)
        case "REPLACE" if words.peek() == "TABLE":
            made = read_create(words, read_query, constant, replaces=True)
            assert isinstance(made, CreateTable)
            return replace(made, must_exist=True)
        case "DROP":
            gone = read_ref_in_table(words, "DROP") or read_drop_view(words)
            return gone or read_drop(words)
        case "INSERT":
            return read_insert(words, read_query, read_text, constant)
        case "COPY":
            return read_copy_from(words, read_query) if is_copy_from(tokens) else None
        case "DELETE":
            return read_delete(words, read_text)
        case "UPDATE":
            return read_update(words, read_query)
        case "MERGE" | "WITH":
            from icesql.sql.writes.merge.read import read_merge

            return read_merge(tokens, sql, read_text)
        case "TRUNCATE":
            return read_truncate(words)
        case "CALL":
            return read_call(words, read_query)
        case "ROLLBACK" if words.skip("TABLE"):
            return read_form(words, "ROLLBACK")
        case "OPTIMIZE" | "VACUUM" | "ANALYZE" | "RESTORE" | "UNDROP" as verb:
            return read_form(words, verb)
        case "ALTER" if words.skip("TABLE"):
            return _read_alter(words, constant, read_query)
        case "ALTER" if words.skip("VIEW"):
            return read_alter_view(words, read_alone)
        case "ALTER":
            return read_ref_in_table(words, "ALTER")
        case "BEGIN" | "START" | "COMMIT" | "ROLLBACK" as first:
            return read_transaction(words, first)
        case "COMMENT" if words.skip("ON"):
            return read_comment(words)
        case _:
            return None


def _read_alter(words: TokenCursor, constant: ReadConstant, read_query: ReadQuery) -> Write:
    exists = words.skip("IF", "EXISTS")
    at = words.here
    table = TableName(words.name("a table"), at)
    change = _read_change(words, table, constant, read_query)
    return IfExists(table, change) if exists else change


def _read_change(
    words: TokenCursor, table: TableName, constant: ReadConstant, read_query: ReadQuery
) -> Write:
    """Read the change after ALTER TABLE and its name."""
    here = words.here
    if words.skip("RENAME", "TO"):
        new = words.name("a table")
        words.end()
        return RenameTable(table, new)
    if words.skip("EXECUTE"):
        return read_execute(words, table, read_query)
    layout = read_layout(words, table)
    if layout is not None:
        return layout
    if words.skip("SET", "TBLPROPERTIES") or words.skip("SET", "PROPERTIES"):
        found = SetProperties(table, read_properties(words))
        words.end()
        return found
    if words.skip("UNSET", "TBLPROPERTIES"):
        exists = words.skip("IF", "EXISTS")
        keys = read_keys(words)
        words.end()
        return SetProperties(table, unset=keys, if_exists=exists)
    ref = read_ref_change(words, table, read_query)
    if ref is not None:
        return ref
    changes = read_column_changes(words, constant)
    if changes is not None:
        return AlterColumns(table, changes)
    shown = f"ALTER TABLE … {words.peek()} {words.peek(1)}".strip()
    hint = _INSTEAD.get(words.peek()) or _INSTEAD.get(words.peek(1))
    raise unsupported(shown, here, hint or "columns, names and properties are changed")


def check_names(statement: Write, sql: str) -> None:
    """Refuse new columns that a query in icesql's own dialect could name only in quotes."""
    match statement:
        case IfExists(change=change):
            check_names(change, sql)
        case CreateTable(columns=columns, query=None):
            for each in columns:
                check_name(each.name, each.offset, sql)
        case AlterColumns(changes=changes):
            for made in changes:
                if made.kind in ("add", "rename") and len(made.path) == 1:
                    check_name(made.text or made.path[0], made.offset, sql)


_INSTEAD: Final = {
    "CLUSTER": "WRITE ORDERED BY a, b sorts new files, and OPTIMIZE t ZORDER BY (a, b) those there",
    "RECLUSTER": "OPTIMIZE t ZORDER BY (a, b) rewrites the files",
    "CONSTRAINT": "there is NOT NULL alone; SET IDENTIFIER FIELDS a tells rows apart",
}
