"""CREATE and DROP of temporary views and tables, and the resolution of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from icesql.errors import ProgrammingError, found_at
from icesql.query.views.expansion import Find, expand
from icesql.query.views.tables import with_tables
from icesql.query.views.temporary import TemporaryTable, View
from icesql.sql.statement import (
    Created,
    CreateTemporary,
    Drop,
    Place,
    Query,
    Shown,
)
from icesql.sql.table_name import Parts

if TYPE_CHECKING:
    from icesql.query.views.temporary import Temporary
    from icesql.sql.statement import Statement, TableReference

# Returns the column names of a query.
ColumnsOf = Callable[[Query], list[str]]
# Runs a query and returns its rows as a table with name and columns; during that time a table that
# it replaces is still in memory.
Materialize = Callable[[CreateTemporary], TemporaryTable]


def create(
    statement: Created,
    made: Temporary,
    place: tuple[str | None, Parts],
    dialect: str | None,
    columns_of: ColumnsOf,
    materialize: Materialize,
) -> int | None:
    """Execute CREATE or DROP; return the number of rows of a new table, else None.

    ``place`` is the current catalog and namespace, in which the view resolves its names. Raises
    ProgrammingError if a name is taken or missing, and for a view that reads itself.
    """
    if isinstance(statement, Drop):
        made.drop(statement)
        return None
    kind = statement.kind.lower()
    is_new = made.check(
        statement.name, kind, replace=statement.replace, if_missing=statement.if_missing
    )
    if not is_new:
        return None if kind == "view" else 0
    if kind == "table":
        table = materialize(statement)
        made.keep(table)
        return int(table.data.num_rows)
    names, found = statement.columns, columns_of(statement.query)
    if len(names) > len(found):
        raise ProgrammingError(
            f'the view "{statement.name}" names {len(names)} columns; its query has {len(found)}'
        )
    # The view does not keep its parameters or the statement around it.
    query = replace(statement.query, given=(None, 0))
    view = View(statement.name, query, names, Place(*place))
    find, own = _views(made), view.name.lower()

    def others(reference: TableReference, place: Place | None) -> View | None:
        found = find(reference, place)
        is_itself = len(reference.parts) == 1 and reference.parts[0].lower() == own
        if is_itself or (found is not None and found.name.lower() == own):
            raise ProgrammingError(
                f'the view "{view.name}" would read itself; write the namespace of the table: '
                f"namespace.{reference.parts[-1]}"
            )
        return found

    expand(query, others, dialect, files=True)
    made.keep(view)
    return None


def _views(made: Temporary) -> Find:
    def find(reference: TableReference, place: Place | None) -> View | None:
        if place is not None and place.stored:
            return None
        found = made.find(reference.parts)
        return found if isinstance(found, View) else None

    return find


def with_temporary(
    query: Query,
    made: Temporary,
    dialect: str | None,
    rows: Callable[[Shown | Query], TemporaryTable | None],
    stored: Find | None = None,
    others: Callable[[TableReference], TemporaryTable | None] | None = None,
    *,
    tables: Mapping[str, TemporaryTable],
    files: bool,
) -> Query:
    """The query with the session's views and temporary tables in place of their names.

    ``rows`` returns the rows of a statement in FROM, None if it is answered without an engine.
    ``stored`` finds the views of catalogs, None to ignore them. ``others`` finds the tables of
    names that mean nothing else. ``tables`` are known only to this statement and take precedence.
    """
    own = _views(made)

    def view(reference: TableReference, place: Place | None) -> View | None:
        if _table(replace(reference, place=place), made, tables) is not None:
            return None
        found = own(reference, place)
        return found if found is not None or stored is None else stored(reference, place)

    expanded = expand(query, view, dialect, files=files) if made or stored else query

    def find(reference: TableReference) -> TemporaryTable | None:
        if reference.shown is not None:
            with found_at(reference.offset):
                return rows(reference.shown)
        found = _table(reference, made, tables)
        return others(reference) if found is None and others is not None else found

    return with_tables(expanded, find)


def drop_of(statement: Statement, made: Temporary) -> Drop | None:
    """DROP TABLE of a temporary table; None for a table of a catalog."""
    from icesql.sql.writes.statements import DropTable

    if not isinstance(statement, DropTable):
        return None
    if made.find(statement.table.parts) is None:
        return None
    return Drop("TABLE", statement.table.parts[-1], statement.if_exists, statement.table.offset)


def named(statement: Shown, made: Temporary) -> View | TemporaryTable | None:
    """The temporary view or table that a DESCRIBE or SHOW names; None for all others."""
    reference = statement.reference
    return None if reference is None or reference.path else made.find(reference.parts)


def _table(
    reference: TableReference, made: Temporary, tables: Mapping[str, TemporaryTable]
) -> TemporaryTable | None:
    """The table of this statement, or else of the session, that a reference names."""
    is_stored = reference.place is not None and reference.place.stored
    if reference.path is not None or is_stored:
        return None
    own = tables.get(reference.parts[0].lower()) if len(reference.parts) == 1 else None
    found = made.find(reference.parts) if own is None else own
    return found if isinstance(found, TemporaryTable) else None
