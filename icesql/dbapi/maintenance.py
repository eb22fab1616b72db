"""Doctor and maintenance of a connection, over one table or all tables of a catalog."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from icesql.context import Progress, QueryContext
from icesql.errors import ProgrammingError, TableNotFoundError
from icesql.health.diagnose import diagnose, diagnose_each, failed, worst_first
from icesql.health.facts import Performed
from icesql.health.finding import CatalogDiagnosis, Diagnosis
from icesql.health.policy import Budget, Policy, read_policy, with_actions
from icesql.health.runs import MaintenanceReport
from icesql.health.upkeep import Door, Request, Tell, maintain
from icesql.sql.table_name import name_parts
from icesql.sql.writes.procedure_calls import CallProcedure

if TYPE_CHECKING:
    from icesql.catalog.search_path import ListedTables
    from icesql.catalog.table import Table
    from icesql.session.session import Session


Report = Callable[[Progress], None]


def maintain_tables(
    session: Session,
    tables: Iterable[str] | None,
    cancel: threading.Event,
    progress: Report | None,
    *,
    policy: str | os.PathLike[str] | None,
    actions: Iterable[str] | None,
    budget: str | None,
    history: str | os.PathLike[str] | None,
    dry_run: bool,
    tell: Tell | None,
) -> MaintenanceReport:
    """See ``Connection.maintain``."""
    read = Policy() if policy is None else read_policy(os.fspath(policy))
    if actions is not None:
        read = with_actions(read, tuple(actions))
    try:
        limit = Budget() if budget is None else Budget.of(budget)
    except ValueError as error:
        raise ProgrammingError(f"budget: {error}") from error
    if not dry_run:
        _check_writes(session)
    path = history if read.history is None or history is not None else read.history
    request = Request(
        read,
        None if tables is None else [*map(name_parts, tables)],
        limit,
        dry_run,
        None if path is None else os.fspath(path),
        _place(session),
    )

    def listed() -> ListedTables:
        with session.without_secrets():
            query = QueryContext.begin(session.state.settings, cancel)
            found = query.wait_for(session.state.names.all_tables)
        for _, error in found.refused:
            session.clean(error)
        return found

    return maintain(request, _door(session, cancel, progress), listed, tell)


def _check_writes(session: Session) -> None:
    """Raise the errors that each statement of maintenance would raise."""
    from icesql.modify.run import check_statement, check_writes
    from icesql.modify.services import check_present

    check_writes(session.state.access)
    check_present(session.state.settings)
    check_statement(CallProcedure(("system", "maintain"), (), 0), session.state)


def _place(session: Session) -> str:
    """The identity of this catalog in a history file, as a hash: addresses may contain secrets."""
    with session.without_secrets():
        catalog = session.state.names.catalog
    given = {key: session.properties.get(key) for key in ("uri", "warehouse")}
    text = repr((None if catalog is None else catalog.name, sorted(map(str, given.items()))))
    return hashlib.sha256(text.encode()).hexdigest()


def _door(session: Session, cancel: threading.Event, progress: Report | None) -> Door:
    def begin() -> QueryContext:
        return QueryContext.begin(session.state.settings, cancel, progress)

    def load(parts: Sequence[str]) -> Table:
        return session.state.names.load(parts, None, begin())

    def perform(statement: CallProcedure, keys: Mapping[str, str]) -> Performed:
        session.check_open()
        query = begin()
        query.summary = keys
        with session.without_secrets():
            outcome = session.execute(statement, query)
            result, done = outcome.result, outcome.modified
            assert result is not None
            try:
                names = [each.name for each in result.columns]
                rows = [dict(zip(names, row, strict=True)) for row in result.fetch(None)]
            finally:
                result.close()
        return Performed(rows, outcome.notes, None if done is None else done.snapshot_id)

    return Door(load, perform, begin, session.without_secrets)


# The doctor of a connection: its round over one table, or over all tables of a catalog.


def diagnose_table(session: Session, table: str, progress: Report | None) -> Diagnosis:
    """Examine a table by its name. Raises TableNotFoundError."""
    parts, door = name_parts(table), _door(session, threading.Event(), progress)
    with session.without_secrets():
        query = door.begin()
        return diagnose(parts, door.perform, session.state.names.load(parts, None, query), query)


def diagnose_catalog(
    session: Session, catalog: str | None, cancel: threading.Event, progress: Report | None
) -> CatalogDiagnosis:
    """Examine all tables of a catalog, by default the connection's own.

    ``query_timeout`` applies to each table: a table that exceeds it is listed with that error.
    Raises ProgrammingError without a catalog, CatalogError if it cannot list its namespaces, and
    QueryCancelledError once ``cancel`` is set.
    """
    # The round over all tables reports its own progress.
    names, door = session.state.names, _door(session, cancel, None)

    def of_one(parts: Sequence[str]) -> Diagnosis | None:
        query = door.begin()
        with session.without_secrets():
            try:
                return diagnose(parts, door.perform, names.load(parts, None, query), query)
            except TableNotFoundError:
                if (*parts,) in query.wait_for(lambda: names.all_tables(catalog)).tables:
                    raise
                return None  # dropped since it was listed

    with session.without_secrets():
        listed = door.begin().wait_for(lambda: names.all_tables(catalog))
        found = []
        for namespace, error in listed.refused:
            session.clean(error)
            found.append(failed((*namespace, "*"), error))
        # For all tables together, so without a deadline.
        query = QueryContext(session.state.settings, cancel, progress=progress)
        found += diagnose_each(listed.tables, of_one, query)
        return CatalogDiagnosis(listed.catalog, worst_first(found))
