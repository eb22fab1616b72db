"""Run one statement that changes tables."""

from __future__ import annotations

from icesql.access import Access
from icesql.context import Progress
from icesql.errors import AccessDeniedError, CommitConflictError, TableNotFoundError
from icesql.modify.modified import Modified, check_present
from icesql.modify.services import StatementServices
from icesql.modify.targets import as_staged, find_named
from icesql.modify.transactions import as_pending, check_statement
from icesql.sql.statement import Write
from icesql.sql.writes import statements as w
from icesql.sql.writes import views
from icesql.sql.writes.alter import layout
from icesql.sql.writes.alter import refs as r
from icesql.sql.writes.merge.statement import Merge
from icesql.sql.writes.procedures.call import CallProcedure


def modify(statement: Write, services: StatementServices) -> Modified:
    """Run the statement; return its outcome. Raises AccessDeniedError on a read-only connection."""
    if isinstance(statement, w.IfExists):
        return _if_exists(statement, services)
    if isinstance(statement, CallProcedure) and statement.explain:
        from icesql.modify.procedures.run import call

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
            from icesql.modify.procedures.run import call

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
            from icesql.modify.definitions.tables import drop_table

            return drop_table(statement, services)
        case w.RenameTable():
            from icesql.modify.definitions.tables import rename_table

            return rename_table(statement, services)
        case w.SetProperties():
            from icesql.modify.definitions.tables import set_properties

            return set_properties(statement, services)
        case w.AlterColumns():
            from icesql.modify.definitions.columns import alter_columns

            return alter_columns(statement, services)
        case w.Delete():
            from icesql.modify.rows.delete import delete

            return delete(statement, services)
        case layout.ChangeLayout() | layout.SetIdentifierFields():
            from icesql.modify.definitions.layout import change_layout

            return change_layout(statement, services)
        case views.CreateStoredView():
            from icesql.modify.views import create_view

            return create_view(statement, services)
        case views.AlterStoredView():
            from icesql.modify.views import alter_view

            return alter_view(statement, services)
        case views.DropStoredView():
            from icesql.modify.views import drop_stored_view

            return drop_stored_view(statement, services)
        case r.CreateRef() | r.DropRef() | r.FastForward():
            from icesql.modify.definitions.refs import change_ref

            return change_ref(statement, services)
        case w.Update():
            from icesql.modify.rows.update import update

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
