"""Transactions of a connection: begin, commit and roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.errors import OperationalError, ProgrammingError, UnsupportedSqlError
from icesql.modify.modified import PENDING, Modified
from icesql.sql.statement import Write

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.modify.services import ChangedState

# Statements that change one table in one commit, by the names of their classes.
_ALLOWED: Final = frozenset({
    "Insert", "Delete", "Update", "Merge", "AlterColumns", "SetProperties", "ChangeLayout",
    "SetIdentifierFields", "CreateRef", "DropRef", "FastForward",
})  # fmt: skip


def control(verb: str, state: ChangedState, query: QueryContext) -> Modified:
    """Run BEGIN, COMMIT or ROLLBACK.

    Raises ProgrammingError for BEGIN if a transaction is open, and OperationalError for COMMIT if a
    statement failed; then the transaction is rolled back.
    """
    if verb != "begin":
        if state.transaction is None:
            return Modified(note="no transaction is open; nothing was done")
        is_failed = state.transaction.is_failed
        done = end(state, query, apply=verb == "commit" and not is_failed)
        if verb == "commit" and is_failed:
            raise OperationalError(
                "a statement of the transaction failed, so it was rolled back; run it again"
            )
        return done
    if state.transaction is not None:
        raise ProgrammingError("a transaction is open already; COMMIT or ROLLBACK ends it")
    begin(state)
    return Modified()


def begin(state: ChangedState) -> None:
    """Begin a transaction; from now on only this connection sees its changes."""
    from icesql.commit.transaction import Transaction

    state.transaction = Transaction()


def end(state: ChangedState, query: QueryContext, *, apply: bool) -> Modified:
    """Commit or discard the changes; the transaction is closed in any case."""
    transaction, state.transaction = state.transaction, None
    if transaction is None:
        return Modified()
    if apply:
        table = transaction.commit(query)
        return Modified(note="" if table is not None else "the transaction changed nothing")
    transaction.rollback()
    return Modified()


def as_pending(done: Modified, state: ChangedState) -> Modified:
    """The outcome of a statement, marked as not committed if a transaction is open.

    Its snapshot has no permanent id: ROLLBACK discards it.
    """
    is_nothing = done.rows is not None and done.snapshot_id is None and not done.evolved
    if state.transaction is None or is_nothing:
        return done
    note = f"{PENDING}: COMMIT applies it, ROLLBACK forgets it"
    notes = "; ".join(filter(None, (done.note, note)))
    return replace(done, pending=True, note=notes)


def begin_by_itself(state: ChangedState) -> None:
    """Begin a transaction if the connection does not autocommit and none is open."""
    if state.transaction is None and not state.autocommit:
        begin(state)


def check_statement(statement: Write, state: ChangedState) -> None:
    """Check a statement before it runs. UnsupportedSqlError if no transaction can contain it."""
    allowed = type(statement).__name__ in _ALLOWED
    if allowed:
        begin_by_itself(state)
    elif state.transaction is not None:
        raise UnsupportedSqlError(
            "a statement in a transaction that does more than change one table",
            hint="COMMIT or ROLLBACK first",
        )
