"""Answer SHOW and DESCRIBE as tables, from catalogs and metadata alone.

The rows about a session are made here, those about a table in ``show_table``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from icesql.catalog.identifiers import listed_name
from icesql.config import Settings, setting_text
from icesql.context import QueryContext
from icesql.errors import NO_CATALOG, CatalogError, MissingExtraError
from icesql.query.show_request import Answer, Columns, Rows, ShowRequest, columns
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.acceptance import known_names
from icesql.sql.grammar import function_names
from icesql.sql.table_name import Parts, name_parts
from icesql.storage.credentials import MASK

if TYPE_CHECKING:
    from icesql.access import Access
    from icesql.catalog.table import Identifier
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import Shown


# ------------------------------------------------------------------ rows about the session


_TEXTS: Final = """
engine | where queries run: local, spark or auto
local_reader | arrow: read every file with icesql's own reader, none with DuckDB's
timezone | session time zone, for literals without a zone and for output
memory_limit | memory limit of queries in bytes; larger intermediates spill to disk
temp_directory | directory for spilling
threads | DuckDB's threads
query_timeout | seconds after which a statement is stopped
split_target_size | bytes of a task
split_lookback | how many tasks are open while files are packed into them
split_open_file_cost | the least bytes that a file counts for when it is packed
delete_memory_limit | memory for delete files in bytes
spark_threshold | bytes to read above which engine = auto uses Spark
prune | off: read every file, to check that pruning loses no row
run_time_filters | off: the keys of a small table limit no other table of the query
verify | how thoroughly files are checked: normal or full
caches | off: no statement uses what one before it kept, in memory or on disk
cache | off: keep nothing of object stores on disk when a connection ends
cache_directory | where files of object stores are kept
cache_size | bytes kept there
whole_file_size | files of object stores up to this size are fetched whole
max_scan_files | a query that would read more files is refused
max_scan_bytes | a query that would read more bytes is refused
require_partition_filter | on: refuse a query without a filter on the partition columns
max_statement_size | bytes of a text; else 16 MB, and 1 MB for a service
snapshot_time | tables are read as they were at this time; also SET SNAPSHOT TIME
snapshot_ref | tables are read at this branch or tag of theirs
wap_id | writes are staged under this id until publish_changes, where the table allows it
wap_branch | writes and reads go to this branch, where the table allows it
partition_overwrite_mode | what INSERT OVERWRITE replaces: static (by PARTITION) or dynamic
delete_below | folders, with commas, beside a table's own where maintenance may delete files
conflict_retries | how often a DELETE, UPDATE or MERGE that lost to another is planned again
"""
_DESCRIPTIONS: Final = dict(line.split(" | ") for line in _TEXTS.strip().splitlines())
# Settings that show folders of the machine, masked if the client cannot change them.
_FOLDERS: Final = ("temp_directory", "cache_directory", "delete_below")


def tables(request: ShowRequest) -> Rows:
    """SHOW TABLES, including temporary tables if no namespace is named."""
    names, namespace = request.names, _place(request)
    if namespace and (names.catalog is not None or names.catalog_kinds()):
        place, rest, other = names.place_of(namespace)
        # A catalog name alone lists all its tables.
        found = _listed(place.tables(rest or None), other)
    else:
        found = names.table_names()
    made = request.session.temporary.all if request.statement.namespace is None else []
    found = [*(listed_name((each.name,)) for each in made), *found]
    return _with_reason(request, [(name,) for name in found if request.keeps(name_parts(name)[-1])])


def views(request: ShowRequest) -> Rows:
    """SHOW VIEWS of a namespace; by default the temporary ones and those of the current one."""
    names, namespace = request.names, _place(request)
    made = request.session.temporary.all if request.statement.namespace is None else []
    rows: Rows = [
        (each.name, True) for each in made if each.kind == "view" and request.keeps(each.name)
    ]
    if names.catalog is None and not names.catalog_kinds():
        return rows
    place, rest, other = names.place_of(namespace) if namespace else (names.catalog, (), None)
    from icesql.catalog.table import with_views

    held = with_views(place)
    found = held.views(rest or None) if held is not None else ()
    kept = [each for each in found if request.keeps(each[-1])]
    return [*rows, *((name, False) for name in _listed(kept, other))]


def namespaces(request: ShowRequest) -> Rows:
    """SHOW NAMESPACES, all or those inside one."""
    catalog, other = request.names.catalog, request.names.place[0]
    parent = request.statement.namespace
    if parent is None and other is not None:
        parent = (other,)
    if parent:
        catalog, parent, other = request.names.place_of(parent)
    known = catalog.namespaces() if catalog is not None else []
    inside = [each for each in known if not parent or each[: len(parent)] == parent]
    shown = [".".join(each if other is None else (other, *each)) for each in inside]
    return _with_reason(request, [(name,) for name in shown if request.keeps(name)])


def catalogs(request: ShowRequest) -> Rows:
    """SHOW CATALOGS."""
    return [each for each in request.names.catalog_kinds().items() if request.keeps(each[0])]


def settings(request: ShowRequest) -> Rows:
    """SHOW ALL; a setting without a value is NULL."""
    session = request.session
    both = (request.query.settings, session.defaults)
    return [
        (name, *(_value(each, name, session.access) for each in both), _DESCRIPTIONS[name])
        for name in sorted(_DESCRIPTIONS)
        if request.keeps(name)
    ]


def setting(request: ShowRequest) -> Rows:
    """SHOW of one setting."""
    return [(_value(request.query.settings, request.statement.name, request.session.access),)]


def functions(request: ShowRequest) -> Rows:
    """SHOW FUNCTIONS of a dialect, and the macros of the session."""
    dialect = request.statement.name
    known = function_names(dialect) if dialect else known_names()
    return [(name,) for name in sorted({*known, *request.session.macros}) if request.keeps(name)]


def _place(request: ShowRequest) -> Parts:
    """The namespace of the statement, or the current one."""
    if request.statement.namespace is not None:
        return request.statement.namespace
    used, inside = request.names.place
    return inside if used is None else (used, *inside)


def _listed(found: Iterable[Identifier], other: str | None) -> list[str]:
    return [listed_name(each if other is None else (other, *each)) for each in found]


def _with_reason(request: ShowRequest, rows: Rows) -> Rows:
    """The rows; a note gives the reason if there are none."""
    if rows or request.statement.like:
        return rows
    catalog = request.names.catalog
    if catalog is None:
        request.notes += (NO_CATALOG,)
        return rows
    hint = getattr(catalog, "empty_hint", None)  # some catalogs have one
    if hint is not None and not catalog.namespaces():
        request.notes += (hint(),)
    return rows


def _value(settings: Settings, name: str, access: Access) -> str | None:
    """The value in the form that SET accepts."""
    value = getattr(settings, name)
    if name in _FOLDERS and value is not None and name in access.locked:
        return MASK
    return setting_text(value)


def all_tables(request: ShowRequest) -> Iterator[tuple[Any, ...]]:
    """SHOW ALL TABLES of every catalog, with a note for another catalog that fails.

    Unreadable tables are left out. Raises CatalogError for the connection's own catalog.
    """
    for each in request.session.temporary.all:
        if isinstance(each, TemporaryTable):
            columns = [name for name, _, _ in each.columns]
            kinds = [engine or kind for _, kind, engine in each.columns]
            yield "temp", "main", each.name, columns, kinds, True
    from icesql.query.information_schema import readable

    names, own = request.names, request.names.catalog
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
            request.notes += (f"catalog {name} is left out: {error}",)
            continue
        if catalog is None:
            continue
        for table in readable(catalog.load, listed, request.query):
            fields = table.metadata.schema.fields
            columns = [field.name for field in fields]
            kinds = [str(field.type) for field in fields]
            schema = ".".join(table.identifier[:-1])
            yield name, schema, table.identifier[-1], columns, kinds, False


# By the subject of a statement: its columns ("" for one named as the setting), its rows.
OF_SESSION: Final[dict[str, Answer]] = {
    "TABLES": ("table varchar", tables),
    "VIEWS": ("view varchar, temporary boolean", views),
    "NAMESPACES": ("namespace varchar", namespaces),
    "CATALOGS": ("catalog varchar, type varchar", catalogs),
    "ALL": (
        "name varchar, value varchar, default varchar, description varchar",
        settings,
    ),
    "SETTING": ("", setting),
    "FUNCTIONS": ("function varchar", functions),
    # The same columns as in DuckDB.
    "ALL TABLES": (
        "database varchar, schema varchar, name varchar, column_names varchar[], "
        "column_types varchar[], temporary boolean",
        all_tables,
    ),
}


# ------------------------------------------------------------------ answers


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
    from icesql.query.show_table import OF_TABLE

    return OF_TABLE[what]
