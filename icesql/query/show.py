"""Answer SHOW and DESCRIBE as tables, from catalogs and metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.context import QueryContext
from icesql.query.show_rows.of_session import OF_SESSION
from icesql.query.show_rows.request import Answer, Columns, Rows, ShowRequest, columns
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.table_name import name_parts

if TYPE_CHECKING:
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import Shown


def show(
    statement: Shown, session: SessionState, query: QueryContext
) -> tuple[Columns, Rows, tuple[str, ...]]:
    """Columns (name, kind), rows and notes that answer a statement.

    Raises the errors of ``names.load``, SnapshotNotFoundError, UnsupportedSqlError for time travel
    where it makes no difference, CatalogError, and the errors of reading manifests.
    """
    request = ShowRequest(statement, session, query)
    rows = list(_answer(statement.what)[1](request))
    return *_wide(columns_of(statement), rows), request.notes


def columns_of(statement: Shown) -> Columns:
    """The names and kinds of a statement's result columns."""
    return columns(_answer(statement.what)[0] or f"{statement.name} varchar")


def column_names(name: str, session: SessionState) -> list[str]:
    """The columns of a table by its name; the name is never parsed as other SQL."""
    parts = name_parts(name)
    made = session.temporary.find(parts)
    if isinstance(made, TemporaryTable):
        return [column for column, _, _ in made.columns]
    table = session.names.open_table(parts)
    return [column.name for column in table.metadata.schema.fields]


def _wide(listed: Columns, rows: Rows) -> tuple[Columns, Rows]:
    """The same columns and rows, with ids as text in columns where one has over 63 bits."""
    far = {
        index
        for row in rows
        for index, value in enumerate(row)
        if listed[index][1] == "bigint" and value is not None and value.bit_length() > 63
    }
    if not far:
        return listed, rows
    named = [
        (name, "varchar" if index in far else kind) for index, (name, kind) in enumerate(listed)
    ]
    return named, [
        tuple(
            str(value) if index in far and value is not None else value
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def _answer(what: str) -> Answer:
    if what in OF_SESSION:
        return OF_SESSION[what]
    # This import needs most of the modules, and SHOW TABLES needs none of them.
    from icesql.query.show_rows.of_table import OF_TABLE

    return OF_TABLE[what]
