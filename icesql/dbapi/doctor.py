"""The doctor of a connection: its round over one table, or over all tables of a catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from icesql.context import QueryContext
from icesql.errors import TableNotFoundError
from icesql.health.diagnose import diagnose, diagnose_each, failed, worst_first
from icesql.health.facts import Answer
from icesql.health.finding import CatalogDiagnosis, Diagnosis
from icesql.sql.table_name import name_parts

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.session.session import Session


def diagnose_table(connection: Connection, session: Session, table: str) -> Diagnosis:
    """Examine the table of a name. Raises TableNotFoundError."""
    names, parts = session.state.names, name_parts(table)
    with session.without_secrets():
        query = QueryContext.begin(connection.settings, progress=connection.progress)
        ask = _ask(connection, shows_progress=True)
        return diagnose(parts, ask, names.load(parts, None, query), query)


def diagnose_catalog(
    connection: Connection, session: Session, catalog: str | None, cancel: threading.Event
) -> CatalogDiagnosis:
    """Examine all tables of a catalog, of the connection's own without a name.

    ``query_timeout`` is of each table: one that exceeds it is a line with that error. Raises
    ProgrammingError without a catalog, CatalogError where it does not list its namespaces, and
    QueryCancelledError once ``cancel`` is set.
    """
    names, ask = session.state.names, _ask(connection, shows_progress=False)

    def of_one(parts: Sequence[str]) -> Diagnosis | None:
        query = QueryContext.begin(connection.settings, cancel)
        with session.without_secrets():
            try:
                return diagnose(parts, ask, names.load(parts, None, query), query)
            except TableNotFoundError:
                if (*parts,) in query.wait_for(lambda: names.all_tables(catalog)).tables:
                    raise
                return None  # dropped since it was listed

    with session.without_secrets():
        listing = QueryContext.begin(connection.settings, cancel)
        listed = listing.wait_for(lambda: names.all_tables(catalog))
        found = []
        for namespace, error in listed.refused:
            session.clean(error)
            found.append(failed((*namespace, "*"), error))
        # Of all of them, so without a deadline.
        query = QueryContext(connection.settings, cancel, progress=connection.progress)
        found += diagnose_each(listed.tables, of_one, query)
        return CatalogDiagnosis(listed.catalog, worst_first(found))


def _ask(connection: Connection, *, shows_progress: bool) -> Callable[[str], Answer]:
    def ask(sql: str) -> Answer:
        with connection.cursor() as cursor:
            if not shows_progress:
                cursor.progress = None  # the round over all tables shows its own
            cursor.execute(sql)
            rows = cursor.fetchall() if cursor.description else []
            return Answer(rows, tuple(cursor.notes))

    return ask
