"""Runs one statement that changes tables; begins, commits and rolls back transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.access import Access
from icesql.context import Progress
from icesql.errors import (
    AccessDeniedError,
    CommitConflictError,
    OperationalError,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from icesql.modify.services import PENDING, Modified, StatementServices, check_present
from icesql.modify.targets import as_staged, find_named
from icesql.sql.statement import Write
from icesql.sql.writes import alter_table
from icesql.sql.writes import statements as w
from icesql.sql.writes.create import AlterStoredView, CreateStoredView, DropStoredView
from icesql.sql.writes.merge_statement import Merge
from icesql.sql.writes.procedure_calls import CallProcedure

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.modify.services import ChangedState


# ------------------------------------------------------------------ transactions


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


# ------------------------------------------------------------------ statements


def modify(statement: Write, services: StatementServices) -> Modified:
    """Run the statement; return its outcome. Raises AccessDeniedError on a read-only connection."""
    if isinstance(statement, w.IfExists):
        return _if_exists(statement, services)
    if isinstance(statement, CallProcedure) and statement.explain:
        from icesql.modify.procedures.call import call

        return call(statement, services)  # it changes nothing
    check_writes(services.state.access)
    # ``call`` makes this check for procedures that change something.
    if not (isinstance(statement, CallProcedure) or _saves_rows(statement)):
        check_present(services.query.settings)
    check_statement(statement, services.state)
    done = _again(statement, services)
    if done.snapshot_id is not None and not isinstance(statement, CallProcedure):
        done = as_staged(done, getattr(statement, "table", None), services)
    return as_pending(done, services.state)


def _if_exists(statement: w.IfExists, services: StatementServices) -> Modified:
    try:
        return modify(statement.change, services)
    except TableNotFoundError:
        try:
            find_named(statement.table, services)
        except TableNotFoundError:
            return Modified(note=f"there is no {statement.table.text}; nothing was done")
        raise


def _again(statement: Write, services: StatementServices) -> Modified:
    """Run the statement; plan it again from the start if other writers changed its rows meanwhile.

    Every attempt uses the time at which the statement began. Only statements that change one table,
    commit by themselves and give the same result each time are repeated; nothing was committed
    before.
    """
    query, most = services.query, 0
    if isinstance(statement, w.Delete | w.Update | Merge) and services.state.transaction is None:
        most = query.settings.conflict_retries
        query.once = set()
    for number in range(most + 1):
        try:
            return _done(statement, services)
        except CommitConflictError as error:
            if not most or not error._rows_changed:
                raise
            if query.once:
                raise CommitConflictError(
                    f"{error}; it is not planned again because of {max(query.once)}"
                ) from error
            if number == most:
                raise CommitConflictError(
                    f"{error}; it was planned {most + 1} times, SET conflict_retries allows more"
                ) from error
            query.check()
            query.report(Progress("planning again", number + 1, most))
    raise AssertionError


def _done(statement: Write, services: StatementServices) -> Modified:
    match statement:
        case CallProcedure():
            from icesql.modify.procedures.call import call

            return call(statement, services)
        case w.Insert():
            from icesql.modify.insert import insert

            return insert(statement, services)
        case w.CreateTable():
            from icesql.modify.create import create

            return create(statement, services)
        case w.CreateNamespace():
            from icesql.modify.create import create_namespace

            return create_namespace(statement, services)
        case w.DropNamespace():
            from icesql.modify.create import drop_namespace

            return drop_namespace(statement, services)
        case w.DropTable():
            from icesql.modify.alter_table import drop_table

            return drop_table(statement, services)
        case w.RenameTable():
            from icesql.modify.alter_table import rename_table

            return rename_table(statement, services)
        case w.SetProperties():
            from icesql.modify.alter_table import set_properties

            return set_properties(statement, services)
        case w.AlterColumns():
            from icesql.modify.alter_columns import alter_columns

            return alter_columns(statement, services)
        case w.Delete():
            from icesql.modify.rows.delete_update import delete

            return delete(statement, services)
        case alter_table.ChangeLayout() | alter_table.SetIdentifierFields():
            from icesql.modify.alter_table import change_layout

            return change_layout(statement, services)
        case CreateStoredView():
            from icesql.modify.views import create_view

            return create_view(statement, services)
        case AlterStoredView():
            from icesql.modify.views import alter_view

            return alter_view(statement, services)
        case DropStoredView():
            from icesql.modify.views import drop_stored_view

            return drop_stored_view(statement, services)
        case alter_table.CreateRef() | alter_table.DropRef() | alter_table.FastForward():
            from icesql.modify.alter_table import change_ref

            return change_ref(statement, services)
        case w.Update():
            from icesql.modify.rows.delete_update import update

            return update(statement, services)
        case Merge():
            from icesql.modify.merge.merge import merge

            return merge(statement, services)
        case _:
            raise AssertionError(f"unreachable statement {statement!r}")


def _saves_rows(statement: Write) -> bool:
    """True for CREATE TABLE AS with a new name, which saves past rows."""
    if not isinstance(statement, w.CreateTable) or statement.query is None:
        return False
    return not (statement.or_replace or statement.must_exist)


def check_writes(access: Access) -> None:
    """Raise AccessDeniedError where SQL may not change tables."""
    if access.read_only:
        raise AccessDeniedError(
            "this connection only reads; connect(read_only=False) lets SQL change tables",
            argument="read_only",
        )
