"""Rows about a session: settings, functions, and all tables with their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import CatalogError, MissingExtraError
from icesql.query.like import is_like
from icesql.query.show_rows.information import readable_tables
from icesql.query.show_rows.rows import Columns, Rows
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.engine_functions import known_names
from icesql.sql.function_table import function_names
from icesql.storage.credentials import MASK

if TYPE_CHECKING:
    from icesql.access import Access
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import ShowSession

_DESCRIPTIONS: Final = {
    "engine": "where queries run: local, spark or auto",
    "local_reader": "arrow: read every file with icesql's own reader, none with DuckDB's",
    "timezone": "session time zone, for literals without a zone and for output",
    "memory_limit": "memory limit of queries in bytes; larger intermediates spill to disk",
    "temp_directory": "directory for spilling",
    "threads": "DuckDB's threads",
    "query_timeout": "seconds after which a statement is stopped",
    "split_target_size": "bytes of a task",
    "split_lookback": "how many tasks are open while files are packed into them",
    "split_open_file_cost": "the least bytes that a file counts for when it is packed",
    "delete_memory_limit": "memory for delete files in bytes",
    "spark_threshold": "bytes to read above which engine = auto uses Spark",
    "prune": "off: read every file, to check that pruning loses no row",
    "run_time_filters": "off: the keys of a small table limit no other table of the query",
    "verify": "how thoroughly files are checked: normal or full",
    "caches": "off: no statement uses what one before it kept, in memory or on disk",
    "cache": "off: keep nothing of object stores on disk when a connection ends",
    "cache_directory": "where files of object stores are kept",
    "cache_size": "bytes kept there",
    "whole_file_size": "files of object stores up to this size are fetched whole",
    "max_scan_files": "a query that would read more files is refused",
    "max_scan_bytes": "a query that would read more bytes is refused",
    "require_partition_filter": "on: refuse a query without a filter on the partition columns",
    "max_statement_size": "bytes of a text; else 16 MB, and 1 MB for a service",
    "snapshot_time": "tables are read as they were at this time; also SET SNAPSHOT TIME",
    "snapshot_ref": "tables are read at this branch or tag of theirs",
    "wap_id": "writes are staged under this id until publish_changes, where the table allows it",
    "wap_branch": "writes and reads go to this branch, where the table allows it",
    "partition_overwrite_mode": "what INSERT OVERWRITE replaces: static (by PARTITION) or dynamic",
    "delete_below": "folders, with commas, beside a table's own where maintenance may delete files",
    "conflict_retries": "how often a DELETE, UPDATE or MERGE that lost to another is planned again",
}
# What a client whose settings are locked need not know of the machine.
_FOLDERS: Final = ("temp_directory", "cache_directory", "delete_below")

_SETTINGS: Columns = (
    ("name", "varchar"), ("value", "varchar"), ("default", "varchar"), ("description", "varchar"),
)  # fmt: skip
# DuckDB's columns.
_ALL_TABLES: Columns = (
    ("database", "varchar"),
    ("schema", "varchar"),
    ("name", "varchar"),
    ("column_names", "varchar[]"),
    ("column_types", "varchar[]"),
    ("temporary", "boolean"),
)


def of_session(
    statement: ShowSession, session: SessionState, query: QueryContext
) -> tuple[Columns, Rows, tuple[str, ...]]:
    """The columns and rows of a statement about the session, and notes.

    Other catalogs that do not answer are left out of SHOW ALL TABLES, with a note. A setting
    without a value is NULL. A table that cannot be read is left out. Raises CatalogError.
    """
    like = None if statement.like is None else statement.like.lower()
    match statement.what:
        case "ALL":
            rows = _settings(query.settings, session)
            return _SETTINGS, [row for row in rows if like is None or is_like(row[0], like)], ()
        case "SETTING":
            name = statement.name
            return ((name, "varchar"),), [(_value(query.settings, name, session.access),)], ()
        case "FUNCTIONS":
            found = sorted({*_functions(statement.name), *session.macros})
            return (
                (("function", "varchar"),),
                [(name,) for name in found if like is None or is_like(name, like)],
                (),
            )
        case _:
            unread: list[str] = []
            return _ALL_TABLES, list(_all_tables(session, query, unread)), tuple(unread)


def _settings(settings: Settings, session: SessionState) -> Iterator[tuple[Any, ...]]:
    for name in sorted(_DESCRIPTIONS):
        value, default = (
            _value(each, name, session.access) for each in (settings, session.defaults)
        )
        yield name, value, default, _DESCRIPTIONS[name]


def _value(settings: Settings, name: str, access: Access) -> str | None:
    """The value as SET takes it."""
    value = getattr(settings, name)
    if name in _FOLDERS and value is not None and name in access.locked:
        return MASK
    if isinstance(value, bool):
        return "on" if value else "off"
    return None if value is None else str(value)


def _functions(dialect: str) -> list[str]:
    if dialect:
        return sorted(function_names(dialect))
    return sorted(known_names())


def _all_tables(session: SessionState, query: QueryContext, unread: list[str]) -> Iterator[Any]:
    """Of every catalog; ``unread`` gets those that do not answer."""
    for each in session.temporary.all:
        if isinstance(each, TemporaryTable):
            columns = [name for name, _, _ in each.columns]
            kinds = [engine or kind for _, kind, engine in each.columns]
            yield "temp", "main", each.name, columns, kinds, True
    names, own = session.names, session.names.catalog
    for name in names.catalog_kinds():
        try:
            is_own = own is not None and own.name == name
            catalog, _, other = (own, (), name) if is_own else names.place_of((name,))
            if other is None:
                catalog = None  # a namespace of the connection's own catalog has its name
            listed = [] if catalog is None else catalog.tables(None)
        except (CatalogError, MissingExtraError) as error:
            if own is not None and own.name == name:
                raise
            unread.append(f"catalog {name} is left out: {error}")
            continue
        if catalog is None:
            continue
        for table in readable_tables(catalog, listed, query):
            fields = table.metadata.schema.fields
            columns = [field.name for field in fields]
            kinds = [str(field.type) for field in fields]
            schema = ".".join(table.identifier[:-1])
            yield name, schema, table.identifier[-1], columns, kinds, False
