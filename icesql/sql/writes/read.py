"""Read a statement that changes tables from its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Tokens
from icesql.sql.positions import unsupported
from icesql.sql.statement import TransactionControl, Write
from icesql.sql.syntax_errors import check_name
from icesql.sql.writes.alter_table import (
    read_column_changes,
    read_comment,
    read_layout,
    read_ref_change,
    read_ref_in_table,
)
from icesql.sql.writes.create import (
    read_alter_view,
    read_create,
    read_create_view,
    read_drop,
    read_drop_view,
)
from icesql.sql.writes.definitions import read_keys, read_name, read_properties
from icesql.sql.writes.insert import read_copy_from, read_insert
from icesql.sql.writes.procedure_calls import read_call, read_execute, read_form
from icesql.sql.writes.statements import (
    AlterColumns,
    CreateTable,
    IfExists,
    RenameTable,
    SetProperties,
    TableName,
)
from icesql.sql.writes.update import read_delete, read_truncate, read_update

if TYPE_CHECKING:
    from icesql.sql.parse import Parse

# BEGIN, COMMIT and ROLLBACK.

_VERBS: Final[dict[str, Literal["commit", "rollback"]]] = {
    "COMMIT": "commit", "ROLLBACK": "rollback",
}  # fmt: skip


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
    return TransactionControl(_VERBS.get(first, "begin"))


def read_write(tokens: Tokens, parse: Parse) -> Write | None:
    """Read the statement; None for one of another kind that begins with the same word.

    Raises SqlSyntaxError and UnsupportedSqlError.
    """
    words = TokenCursor(tokens, parse.sql, parse)
    words.index = 1
    match tokens[0].word:
        case "CREATE":
            ref = read_ref_in_table(words, "CREATE")
            return ref or read_create_view(words) or read_create(words)
        case "REPLACE" if words.peek() == "TABLE":
            made = read_create(words, replaces=True)
            assert isinstance(made, CreateTable)
            return replace(made, must_exist=True)
        case "DROP":
            return read_ref_in_table(words, "DROP") or read_drop_view(words) or read_drop(words)
        case "INSERT":
            return read_insert(words)
        case "COPY":
            return read_copy_from(words)
        case "DELETE":
            return read_delete(words)
        case "UPDATE":
            return read_update(words)
        case "MERGE" | "WITH":
            from icesql.sql.writes.merge_reading import read_merge

            return read_merge(tokens, parse)
        case "TRUNCATE":
            return read_truncate(words)
        case "CALL":
            return read_call(words)
        case "ROLLBACK" if words.skip("TABLE"):
            return read_form(words, "ROLLBACK")
        case "OPTIMIZE" | "VACUUM" | "ANALYZE" | "RESTORE" | "UNDROP" as verb:
            return read_form(words, verb)
        case "ALTER" if words.skip("TABLE"):
            exists = words.skip("IF EXISTS")
            table = read_name(words)
            change = _read_change(words, table)
            words.end()
            return IfExists(table, change) if exists else change
        case "ALTER" if words.skip("VIEW"):
            return read_alter_view(words)
        case "ALTER":
            return read_ref_in_table(words, "ALTER")
        case "BEGIN" | "START" | "COMMIT" | "ROLLBACK" as first:
            return read_transaction(words, first)
        case "COMMENT" if words.skip("ON"):
            return read_comment(words)
        case _:
            return None


def _read_change(words: TokenCursor, table: TableName) -> Write:
    """Read the change after ALTER TABLE and its name."""
    here = words.here
    if words.skip("RENAME TO"):
        return RenameTable(table, words.name("a table"))
    if words.skip("EXECUTE"):
        return read_execute(words, table)
    layout = read_layout(words, table)
    if layout is not None:
        return layout
    if words.skip("SET TBLPROPERTIES") or words.skip("SET PROPERTIES"):
        return SetProperties(table, read_properties(words))
    if words.skip("UNSET TBLPROPERTIES"):
        exists = words.skip("IF EXISTS")
        return SetProperties(table, unset=read_keys(words), if_exists=exists)
    ref = read_ref_change(words, table)
    if ref is not None:
        return ref
    changes = read_column_changes(words)
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
