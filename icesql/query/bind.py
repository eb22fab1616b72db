"""Bind a query: tables become scans at a snapshot, with columns, filters and limit pushed in.

Local files that it reads are found and checked here, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from icesql.errors import found_at
from icesql.query.bound import BoundQuery, FileScan
from icesql.query.columns import bind_columns, name_nested_queries
from icesql.query.constants.session_values import put_session_literals, put_session_values
from icesql.query.constants.volatile import stop_clock
from icesql.query.dialects.translate import translate
from icesql.query.metadata_scan import Found, load, metadata_scan
from icesql.query.names import select_scopes, type_lists
from icesql.query.pushdown.push_down import push_down
from icesql.query.snapshot_selection import (
    at_instant,
    by_schema,
    select_snapshot,
)
from icesql.scan.plan import TableScan
from icesql.sql.positions import unsupported
from icesql.sql.time_travel import AsOf, BranchAt, VersionText
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.query.bound import KeyEdge
    from icesql.query.session_state import SessionState
    from icesql.query.snapshot_selection import SelectedSnapshot
    from icesql.sql.statement import FileReference, Query, TableReference
    from icesql.sql.time_travel import TimeTravel


def bind(
    statement: Query,
    session: SessionState,
    query: QueryContext,
    *,
    on_spark: bool = False,
) -> BoundQuery:
    """The query over scans; each table that the query names is opened once.

    ``on_spark`` binds the Spark text of the statement, if it has one.
    Raises ColumnNotFoundError, AmbiguousColumnError, SnapshotNotFoundError, UnsupportedSqlError,
    the errors of ``SearchPath.load``, and for local files those of ``bind_files``. Reads no
    manifests or data.
    """
    conditions = spark = None
    if on_spark and statement.spark is not None:
        from icesql.query.spark_text import SparkConditions, bind_text, spark_statement

        statement, conditions = spark_statement(statement), SparkConditions(query)
        spark = bind_text(statement, query)
    elif statement.refused is not None:
        raise statement.refused
    _check_engine(statement, query)
    tree = statement.tree.copy()
    # An invalid time raises before any request to a catalog.
    travels = [
        None if reference.travel is None else at_instant(reference.travel, query)
        for reference in statement.references
    ]
    tables = open_tables(statement.references, session.names, query)
    scans, schemas, resolved, notes = [], [], [], [*statement.notes]
    for reference, written, found in zip(statement.references, travels, tables, strict=True):
        scan, selected = _scan(reference, written, found, session, query)
        scans.append(scan)
        schemas.append(scan.schema)
        if selected.note is not None and selected.note not in notes:
            notes.append(selected.note)
        resolved.append(selected)
    if statement.user_text is None or query.settings.engine != "local":
        # DuckDB itself names the columns when it runs the user's text.
        name_nested_queries(tree, statement.references)
    if statement.translated and spark is None:
        put_session_literals(tree, statement.translated, session, query)
        zone = query.settings.timezone
        translate(tree, schemas, statement.translated, zone, statement.temporary)
    edits = stop_clock(tree, query)
    if query.once is not None:
        from icesql.query.constants.volatile import volatile_parts

        query.once.update(volatile_parts(tree), filter(None, [statement.only_text]))
    if statement.user_text is not None:
        edits += put_session_values(tree, session, query)
    scopes = select_scopes(tree, schemas)
    has_lists = type_lists(scopes, scans)
    filtered, pushed = push_down(
        tree,
        scopes,
        tuple(scans),
        query,
        spark=conditions,
        for_explain=statement.for_explain,
    )
    projected = bind_columns(tree, scopes, filtered, edits)
    files: tuple[FileScan, ...] = ()
    if statement.files:
        files = bind_files(statement.files, session.access.files, query)
    edges: tuple[KeyEdge, ...] = ()
    if spark is not None:
        projected = spark.checked(projected)
    elif len(scans) > 1 and query.settings.prune and query.settings.run_time_filters:
        from icesql.query.run_time_filters import key_edges

        edges = key_edges(scopes, filtered)
    if statement.about:
        # Counts from metadata cannot be added to a description of the rows.
        projected = tuple(
            replace(scan, counts=(), extremes=() if scan.counts else scan.extremes)
            for scan in projected
        )
    if statement.about == "DESCRIBE":
        projected = tuple(replace(scan, limit=0) for scan in projected)
    return BoundQuery(
        tree=tree,
        scans=projected,
        references=tuple(statement.references),
        notes=tuple(notes),
        pushed=pushed,
        resolved=tuple(resolved),
        files=files,
        has_lists=has_lists,
        spark=spark,
        user_text=statement.user_text and statement.user_text.with_edits(edits).named(),
        about=statement.about,
        only_text=statement.only_text,
        edges=edges,
        temporary=statement.temporary,
        sources=statement.sources,
    )


def _check_engine(statement: Query, query: QueryContext) -> None:
    """Refuse a statement that needs the local engine if another one is set."""
    only = statement.only_text or ("a temporary table" if statement.temporary else "")
    if only and query.settings.engine != "local":
        what = f"{only} where engine = '{query.settings.engine}'"
        raise unsupported(what, None, "it runs with engine = 'local'")


def scan_of(reference: TableReference, session: SessionState, query: QueryContext) -> TableScan:
    """The scan of one table. Raises the errors of ``bind`` for its name and time."""
    (found,) = open_tables((reference,), session.names, query)
    return _scan(reference, at_instant(reference.travel, query), found, session, query)[0]


def _scan(
    reference: TableReference,
    written: TimeTravel | None,
    found: Found | None,
    session: SessionState,
    query: QueryContext,
) -> tuple[TableScan, SelectedSnapshot]:
    """The scan of a reference at its snapshot; a scan without a table for a statement in FROM."""
    if found is None:
        from icesql.query.information_schema import shown_scan

        scan = shown_scan(reference, session, query)
        return scan, select_snapshot(scan.table, None, query)
    table = found.table
    travel = _one_travel(reference, written, found.travel)
    with found_at(reference.offset):
        if reference.changes is not None and found.metadata_table is not None:
            raise unsupported("changes of a metadata table", reference.offset, "name the table")
        if reference.schema and (reference.changes is not None or found.metadata_table is not None):
            what = f"WITH {reference.schema.upper()} SCHEMA on this table"
            raise unsupported(what, reference.offset, "it has columns of its own")
        if reference.changes is not None:
            from icesql.query.changes import change_scan

            scan, selected = change_scan(table, reference.changes, query)
        else:
            selected = by_schema(table, select_snapshot(table, travel, query), reference.schema)
            snapshot, schema = selected.snapshot, selected.schema
            scan = TableScan(table, snapshot, schema, schema, ref=selected.ref)
    if found.metadata_table is not None:
        scan = metadata_scan(scan, found.metadata_table, reference)
    return scan, selected


def _one_travel(
    reference: TableReference, written: TimeTravel | None, named: TimeTravel | None
) -> TimeTravel | None:
    """The time of a reference, by its clause, its name, or both for a branch at a time."""
    if isinstance(named, VersionText) and isinstance(written, AsOf) and not reference.changes:
        return BranchAt(named.text, written)
    if named is not None and (written is not None or reference.changes is not None):
        raise unsupported("two versions of one table", reference.offset, "give one of them")
    return written or named


def open_tables(
    references: tuple[TableReference, ...],
    names: SearchPath,
    query: QueryContext,
) -> list[Found | None]:
    """One table for each reference, with the version of its name's suffix; None for a statement.

    All references to one table share its value, and so one version of its metadata.
    """
    opened: dict[Any, Any] = {} if query.opened is None else query.opened
    by_reference: dict[tuple[object, ...], Found] = opened.setdefault("by reference", {})
    by_place: dict[tuple[object, ...], Table] = opened.setdefault("by place", {})
    tables: list[Found | None] = []
    for reference in references:
        query.check()
        if reference.shown is not None:
            tables.append(None)
            continue
        key = (reference.parts, reference.path, reference.metadata_table, reference.place)
        found = by_reference.get(key)
        if found is None:
            with found_at(reference.offset):
                loaded = load(reference, names, query)
            # Two spellings of one name ("T" and t) must not read two versions of its metadata.
            table = loaded.table
            folder = table.metadata_location.rpartition("/")[0]
            table = by_place.setdefault((table.identifier, folder), table)
            found = by_reference[key] = replace(loaded, table=table)
        tables.append(found)
    return tables


# ------------------------------------------------------------------ local files


def bind_files(
    references: Iterable[FileReference], allowed: bool | Roots, query: QueryContext
) -> tuple[FileScan, ...]:
    """Bind each reference to its files.

    Raises AccessDeniedError, StorageError, QueryCancelledError, and UnsupportedSqlError if the
    setting ``engine`` is not "local", because other engines do not read files.
    """
    from icesql.storage.roots import local_files

    scans = []
    for reference in references:
        if query.settings.engine != "local":
            raise unsupported(
                f"{reference.function}() where engine = '{query.settings.engine}'",
                reference.offset,
                "files are read with engine = 'local'",
            )
        found = [
            file for path in reference.paths for file in local_files(path, allowed, query.check)
        ]
        if isinstance(allowed, Roots):
            folders = frozenset(real for _, real in allowed.local)
        else:
            folders = frozenset(os.path.dirname(file) for file in found)
        scans.append(
            FileScan(reference.name, reference.function, tuple(found), reference.options, folders)
        )
    return tuple(scans)
