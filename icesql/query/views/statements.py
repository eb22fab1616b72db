"""Statements about temporary views and tables, and the resolution of their names.

They are CREATE, DROP, DESCRIBE and SHOW; the last two also describe views of catalogs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import ProgrammingError, found_at
from icesql.query.show_request import Rows, is_like
from icesql.query.views.expansion import Find, expand
from icesql.query.views.temporary import SparkFrame, TemporaryTable, View
from icesql.quoting import quoted
from icesql.sql.edited_text import TABLE
from icesql.sql.positions import unsupported
from icesql.sql.statement import (
    Created,
    CreateTemporary,
    Drop,
    Place,
    Query,
    Shown,
    TableReference,
)
from icesql.sql.table_name import Parts
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.table import StoredView
    from icesql.query.views.temporary import Temporary
    from icesql.sql.statement import Shown, Statement, TableReference


# ------------------------------------------------------------------ tables that a statement names
# Each becomes ``"__temp_<i>"`` instead of a scan.


_HINT: Final = "SET engine = local"


def with_tables(query: Query, find: Callable[[TableReference], TemporaryTable | None]) -> Query:
    """The query without temporary tables in its references; the same query if it has none.

    A DataFrame of Spark stays a reference: it is scanned.

    Raises UnsupportedSqlError for time travel on a temporary table.
    """
    found = [find(reference) for reference in query.references]
    if not any(found):
        return query
    names: dict[str, str] = {}
    left: list[TableReference] = []
    held: list[TemporaryTable] = []
    first = None
    for reference, table in zip(query.references, found, strict=True):
        old = f"__scan_{reference.index}"
        if table is not None and (reference.travel is not None or reference.changes is not None):
            what = f"time travel on the temporary table {reference.name}"
            raise unsupported(what, reference.offset, "it has no snapshots")
        if table is None or isinstance(table, SparkFrame):
            names[old] = f"__scan_{len(left)}"
            shown = reference.shown if table is None else table
            left.append(replace(reference, index=len(left), shown=shown))
        else:
            names[old] = f"__temp_{len(held)}"
            held.append(table)
            first = first or reference
    tree = query.tree.copy()
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier) and node.name in names:
            node.set("this", exp.to_identifier(names[node.name], quoted=True))
    text = query.user_text
    if text is not None:
        edits = tuple(
            replace(edit, text=names.get(edit.text, edit.text)) if edit.kind == TABLE else edit
            for edit in text.edits
        )
        text = replace(text, edits=edits)
    spark = query.spark
    if spark is not None and first is not None:
        spark = unsupported("a temporary table on the Spark engine", first.offset, _HINT)
    return replace(
        query,
        tree=tree,
        references=tuple(left),
        user_text=text,
        spark=spark,
        temporary=tuple(held),
    )


# ------------------------------------------------------------------ CREATE and DROP


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


# ------------------------------------------------------------------ DESCRIBE and SHOW


def shown(
    statement: Shown, made: View | TemporaryTable, columns: Sequence[tuple[str, str]]
) -> Rows:
    """The rows of a statement about a temporary view or table, which has ``columns``.

    Raises UnsupportedSqlError for statements that need a table of a catalog, and for time travel.
    """
    called = f"the temporary {made.kind} {made.name}"
    about = {
        "# Detailed Table Information": "",
        "Name": made.name,
        "Type": f"temporary {made.kind}",
    }
    sql = created(made) if isinstance(made, View) else None
    hint = "it has no snapshots, partitions or properties"
    described: Rows = [(name, kind, True, None, None, None) for name, kind in columns]
    return _rows(statement, called, described, about, sql, None, hint)


def shown_stored(statement: Shown, view: StoredView, dialect: str | None) -> Rows:
    """The rows of a statement about a view of a catalog, from its metadata.

    Raises UnsupportedSqlError for statements that need a table, and for time travel.
    """
    metadata, text = view.metadata, definition(view, dialect)
    fields = metadata.schema.fields
    described: Rows = [
        (each.name, str(each.type), not each.required, each.field_id, None, each.doc)
        for each in fields
    ]
    held = ", ".join(each.dialect for each in metadata.representations)
    about = {
        "# Detailed View Information": "",
        "Name": f"{view.catalog}.{view.name}",
        "Type": "view",
        "Version": str(metadata.version_id),
        "Default Catalog": metadata.default_catalog or view.catalog,
        "Default Namespace": ".".join(metadata.default_namespace),
        "Dialects": held,
        "View Text": text,
    }
    names = ", ".join(quoted(each.name) for each in fields)
    sql = f"CREATE VIEW {view.name} ({names}) AS {text}"
    hint = "it has no snapshots and no partitions"
    called = f"the view {view.name}"
    return _rows(statement, called, described, about, sql, metadata.properties, hint)


def _rows(
    statement: Shown,
    called: str,
    described: Rows,
    about: Mapping[str, str],
    sql: str | None,
    properties: Mapping[str, str] | None,
    hint: str,
) -> Rows:
    """The rows of a statement about a view or a temporary table.

    ``described`` are those of DESCRIBE, ``about`` the lines of DESCRIBE EXTENDED after the columns,
    ``sql`` is the statement that creates it, and ``properties`` are those of its metadata; None
    without one.
    """
    reference = statement.reference
    assert reference is not None
    if reference.travel is not None or reference.changes is not None:
        raise unsupported(f"time travel on {called}", reference.offset)
    # The columns are those of ``OF_TABLE`` in ``query`` for the same statement about a table.
    match statement.what:
        case "DESCRIBE":
            return described
        case "COLUMNS":
            like = "%" if statement.like is None else statement.like.lower()
            return [
                (name, kind, None, comment)
                for name, kind, *_, comment in described
                if is_like(name.lower(), like)
            ]
        case "EXTENDED":
            return [
                *((name, kind, comment) for name, kind, *_, comment in described),
                ("", "", ""),
                *((name, value, "") for name, value in about.items()),
            ]
        case "CREATE VIEW" | "CREATE TABLE" if sql is not None:
            return [(sql,)]
        case "TBLPROPERTIES" if properties is not None:
            return sorted((key, redact_urls(value)) for key, value in properties.items())
        case _:
            raise unsupported(f"{statement.label} of {called}", reference.offset, hint)


def definition(view: StoredView, dialect: str | None) -> str:
    """The SQL of a view, in the requested dialect if the view has it, else in its first one."""
    held = view.metadata.representations
    wanted = (dialect or "duckdb").lower()
    own = [each.sql for each in held if each.dialect == wanted]
    return (own or [each.sql for each in held] or [""])[0]


def created(view: View) -> str:
    """The statement that creates the view again."""
    columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
    return f"CREATE TEMP VIEW {quoted(view.name)}{columns} AS {view.query.text}"
