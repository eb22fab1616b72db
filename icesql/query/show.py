"""SHOW and DESCRIBE: a table of what each lists, from catalogs and metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.context import QueryContext
from icesql.query.show_rows import of_session
from icesql.query.show_rows.request import Answer, Columns, Rows, ShowRequest
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.table_name import name_parts

if TYPE_CHECKING:
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import Shown


def show(
    statement: Shown, session: SessionState, query: QueryContext
) -> tuple[Columns, Rows, tuple[str, ...]]:
    """Columns (name, kind), rows and notes that answer a statement.

    Raises what ``names.load`` raises, SnapshotNotFoundError, UnsupportedSqlError for time travel
    where it makes no difference, CatalogError, and what reading manifests raises.
    """
    request = ShowRequest(statement, session, query)
    rows = _answer(statement.what)[1](request)
    return *_wide(columns_of(statement), rows), request.notes


def columns_of(statement: Shown) -> Columns:
    """The names and kinds of the columns that a statement shows."""
    listed = (_answer(statement.what)[0] or f"{statement.name} varchar").split(", ")
    return [(name, kind) for name, _, kind in (each.partition(" ") for each in listed)]


def column_names(name: str, session: SessionState) -> list[str]:
    """The columns of a table by its name, which is never read as other SQL."""
    parts = name_parts(name)
    made = session.temporary.find(parts)
    if isinstance(made, TemporaryTable):
        return [column for column, _, _ in made.columns]
    table = session.names.open_table(parts)
    return [column.name for column in table.metadata.schema.fields]


def _wide(columns: Columns, rows: Rows) -> tuple[Columns, Rows]:
    """The same with ids as text where one of them has more than 63 bits."""
    far = {
        index
        for row in rows
        for index, value in enumerate(row)
        if columns[index][1] == "bigint" and value is not None and value.bit_length() > 63
    }
    if not far:
        return columns, rows
    named = [
        (name, "varchar" if index in far else kind) for index, (name, kind) in enumerate(columns)
    ]
    return named, [
        tuple(
            str(value) if index in far and value is not None else value
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def _answer(what: str) -> Answer:
    if what in of_session.ANSWERS:
        return of_session.ANSWERS[what]
    # Reading tables takes most of the modules, and SHOW TABLES none of them.
    from icesql.query.show_rows import of_table

    return of_table.ANSWERS[what]
