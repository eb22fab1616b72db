"""Transactions of a connection: begun, applied in one commit, or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.modify.modified import PENDING, Modified
from icesql.sql.statement import Write

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext

# Statements that change one table by a commit, by the names of their values.
_ALLOWED: Final = frozenset({
    "Insert", "Delete", "Update", "Merge", "AlterColumns", "SetProperties", "ChangeLayout",
    "SetIdentifierFields", "CreateRef", "DropRef", "FastForward",
})  # fmt: skip


def control(verb: str, names: SearchPath, query: QueryContext) -> Modified:
    """BEGIN, COMMIT or ROLLBACK. Raises ProgrammingError where one is open already."""
    if verb != "begin":
        if names.transaction is None:
            return Modified(note="no transaction is open; nothing was done")
        return end(names, query, apply=verb == "commit")
    if names.transaction is not None:
        raise ProgrammingError("a transaction is open already; COMMIT or ROLLBACK ends it")
    begin(names)
    return Modified()


def begin(names: SearchPath) -> None:
    """From now on changes are seen by this connection alone."""
    from icesql.commit.transaction import Transaction

    names.transaction = Transaction()


def end(names: SearchPath, query: QueryContext, *, apply: bool) -> Modified:
    """Apply or forget the changes; whatever comes of it, no transaction is open then."""
    transaction, names.transaction = names.transaction, None
    if transaction is None:
        return Modified()
    if apply:
        table = transaction.commit(query)
        return Modified(note="" if table is not None else "the transaction changed nothing")
    transaction.rollback()
    return Modified()


def as_pending(done: Modified, names: SearchPath) -> Modified:
    """What a statement has done, told as not committed yet where a transaction is open.

    The snapshot of it has no name that stays: ROLLBACK forgets it.
    """
    if names.transaction is None or (done.rows is not None and done.snapshot_id is None):
        return done
    note = f"{PENDING}: COMMIT applies it, ROLLBACK forgets it"
    notes = "; ".join(filter(None, (done.note, note)))
    return replace(done, pending=True, note=notes)


def begin_by_itself(names: SearchPath) -> None:
    """Begin a transaction where the connection does so and none is open."""
    if names.transaction is None and not names.autocommit:
        begin(names)


def check_statement(statement: Write, names: SearchPath) -> None:
    """Before a statement runs. Raises UnsupportedSqlError for one that no transaction can have."""
    allowed = type(statement).__name__ in _ALLOWED
    if allowed:
        begin_by_itself(names)
    elif names.transaction is not None:
        raise UnsupportedSqlError(
            "a statement in a transaction that does more than change one table",
            hint="COMMIT or ROLLBACK first",
        )
