"""SHOW and DESCRIBE: rows about tables, from catalogs and metadata alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from icesql.catalog.identifiers import listed_name
from icesql.catalog.view import with_views
from icesql.config import time_zone
from icesql.context import QueryContext
from icesql.errors import NO_CATALOG, UnsupportedSqlError
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.query.like import is_like
from icesql.query.show_rows.of_session import of_session
from icesql.query.show_rows.of_table import described, found_table, of_table, transforms_by_column
from icesql.query.show_rows.rows import Columns, Rows
from icesql.query.views.temporary import TemporaryTable
from icesql.sql import statement as kinds
from icesql.sql.table_name import name_parts
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.query.session_state import SessionState
    from icesql.query.views.temporary import Temporary
    from icesql.sql.statement import Statement, TableReference


def show(
    statement: Statement, session: SessionState, query: QueryContext
) -> tuple[Columns, Rows, tuple[str, ...]]:
    """Columns (name, kind), rows and notes that answer a SHOW or DESCRIBE statement."""
    names, temporary = session.names, session.temporary
    match statement:
        case kinds.ShowTables(namespace, like):
            rows = _tables(names, temporary, namespace, like)
            return [("table", "varchar")], rows, _why_empty(rows, names, like)
        case kinds.ShowViews(namespace, like):
            found = query.wait_for(lambda: _views(names, temporary, namespace, like))
            return [("view", "varchar"), ("temporary", "boolean")], found, ()
        case kinds.ShowCatalogs(like):
            return [("catalog", "varchar"), ("type", "varchar")], _catalogs(names, like), ()
        case kinds.ShowNamespaces(parent, like):
            rows = _namespaces(names, parent, like)
            return [("namespace", "varchar")], rows, _why_empty(rows, names, like)
        case kinds.ShowSnapshots(reference, extended):
            rows = _snapshots(found_table(reference, names, query, "SHOW SNAPSHOTS"), query)
            if extended:
                return *_wide(_SNAPSHOT_COLUMNS, rows), ()
            # As much as 80 cells hold: times of the session's zone, which AS OF reads so, too.
            short = [(row[0].replace(tzinfo=None), row[1], *row[3:6]) for row in rows]
            named = [("committed_at", "timestamp"), _SNAPSHOT_COLUMNS[1], *_SNAPSHOT_COLUMNS[3:6]]
            return *_wide(named, short), ()
        case kinds.ShowRefs(reference):
            refs = _refs(found_table(reference, names, query, "SHOW REFS"))
            return *_wide(_REF_COLUMNS, refs), ()
        case kinds.Describe(reference):
            return _DESCRIBE_COLUMNS, _describe(reference, names, query), ()
        case kinds.ShowOfTable(what="DIFF SUMMARY"):
            from icesql.query.travel.diff_summary import DIFF_COLUMNS, diff_summary

            told, notes = diff_summary(statement, names, query)
            return DIFF_COLUMNS, told, notes
        case kinds.ShowOfTable():
            return *_wide(*of_table(statement, names, query)), ()
        case kinds.ShowSession():
            return of_session(statement, session, query)
        case _:
            raise UnsupportedSqlError(type(statement).__name__)


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
    told = [
        (name, "varchar" if index in far else kind) for index, (name, kind) in enumerate(columns)
    ]
    return told, [
        tuple(
            str(value) if index in far and value is not None else value
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def _why_empty(rows: Rows, names: SearchPath, like: str | None) -> tuple[str, ...]:
    """What to know about a list of tables or namespaces that is empty."""
    if rows or like:
        return ()
    catalog = names.catalog
    if catalog is None:
        return (NO_CATALOG,)
    hint = getattr(catalog, "empty_hint", None)  # of catalogs that keep names apart
    return (hint(),) if hint is not None and not catalog.namespaces() else ()


def _catalogs(names: SearchPath, like: str | None) -> Rows:
    return [(name, kind) for name, kind in names.catalog_kinds().items() if _like(name, like)]


def _tables(
    names: SearchPath, temporary: Temporary, namespace: tuple[str, ...] | None, like: str | None
) -> Rows:
    catalog = names.catalog
    made = temporary.all if namespace is None else []
    if namespace is None:
        used, inside = names.place
        namespace = inside if used is None else (used, *inside)
    if namespace and (catalog is not None or names.catalog_kinds()):
        place, rest, other = names.place_of(namespace)
        # A catalog alone means all that it has.
        found = [
            listed_name(identifier if other is None else (other, *identifier))
            for identifier in place.tables(rest or None)
        ]
    else:
        found = names.table_names()
    found = [*(listed_name((each.name,)) for each in made), *found]
    return [(name,) for name in found if _like(name_parts(name)[-1], like)]


def _views(
    names: SearchPath, temporary: Temporary, namespace: tuple[str, ...] | None, like: str | None
) -> Rows:
    """The views of a namespace; without one, the temporary ones and those of where USE has led."""
    made = temporary.all if namespace is None else []
    views = [each.name for each in made if each.kind == "view"]
    rows: Rows = [(name, True) for name in views if _like(name, like)]
    if namespace is None:
        used, inside = names.place
        namespace = inside if used is None else (used, *inside)
    if names.catalog is None and not names.catalog_kinds():
        return rows
    place, rest, other = names.place_of(namespace) if namespace else (names.catalog, (), None)
    held = with_views(place)
    for identifier in held.views(rest or None) if held is not None else ():
        if _like(identifier[-1], like):
            name = listed_name(identifier if other is None else (other, *identifier))
            rows.append((name, False))
    return rows


def _namespaces(names: SearchPath, parent: tuple[str, ...] | None, like: str | None) -> Rows:
    catalog, other = names.catalog, names.place[0]
    if parent is None and other is not None:
        parent = (other,)
    if parent:
        catalog, parent, other = names.place_of(parent)
    known = catalog.namespaces() if catalog is not None else []
    inside = [each for each in known if not parent or each[: len(parent)] == parent]
    shown = [".".join(each if other is None else (other, *each)) for each in inside]
    return [(name,) for name in shown if _like(name, like)]


def _like(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    return is_like(name.lower(), pattern.lower())


_SNAPSHOT_COLUMNS: Columns = (
    ("committed_at", "timestamptz"),
    ("snapshot_id", "bigint"),
    ("parent_id", "bigint"),
    ("operation", "varchar"),
    ("refs", "varchar"),
    ("records", "bigint"),
    ("summary", "varchar"),
)


def _snapshots(table: Table, query: QueryContext) -> Rows:
    """Oldest first; ``refs`` names the branches and tags at a snapshot."""
    zone = time_zone(query.settings.timezone)
    at: dict[int, list[str]] = {}
    for name, ref in table.metadata.refs.items():
        at.setdefault(ref.snapshot_id, []).append(name)
    rows: Rows = []
    snapshots = sorted(table.metadata.snapshots.values(), key=lambda each: each.timestamp_ms)
    for snapshot in snapshots:
        rows.append(
            (
                (_EPOCH + timedelta(milliseconds=snapshot.timestamp_ms)).astimezone(zone),
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.operation,
                ", ".join(at.get(snapshot.snapshot_id, ())) or None,
                whole_number(snapshot.summary.get("total-records")),
                redact_urls(json.dumps(dict(snapshot.summary))),
            )
        )
    return rows


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_REF_COLUMNS: Columns = (("name", "varchar"), ("type", "varchar"), ("snapshot_id", "bigint"))


def _refs(table: Table) -> Rows:
    return [(name, ref.kind, ref.snapshot_id) for name, ref in table.metadata.refs.items()]


_DESCRIBE_COLUMNS: Columns = (
    ("column", "varchar"),
    ("type", "varchar"),
    ("nullable", "boolean"),
    ("field_id", "integer"),
    ("partition", "varchar"),
    ("comment", "varchar"),
)


def _describe(reference: TableReference, names: SearchPath, query: QueryContext) -> Rows:
    schema, spec = described(reference, names, query)
    partitions = transforms_by_column(spec)
    return [
        (
            column.name,
            str(column.type),
            not column.required,
            column.field_id,
            partitions.get(column.field_id),
            column.doc,
        )
        for column in schema.fields
    ]
