"""CREATE VIEW, ALTER VIEW and DROP VIEW in a catalog."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.catalog.table import with_views
from icesql.catalog.targets import new_place, refused, view_changes
from icesql.commit.branches import engine_summary
from icesql.errors import CatalogError, ProgrammingError, UnsupportedSqlError
from icesql.iceberg.evolution.schema_changes import with_fresh_ids
from icesql.iceberg.metadata.views import NewView
from icesql.iceberg.schema import Schema
from icesql.modify.column_types import result_fields
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import properties_to_unset, renamed_place
from icesql.query.views.expansion import reads_variables
from icesql.sql.writes.create import AlterStoredView, CreateStoredView, DropStoredView
from icesql.sql.writes.statements import TableName

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier, StoredView

# The property in which Spark looks up the query's column names, if the view renames them.
_QUERY_COLUMNS: Final = "spark.query-column-names"
_OWN: Final = "duckdb"


def create_view(statement: CreateStoredView, services: StatementServices) -> Modified:
    """Create a view, or add a version to it, with the current columns of its query.

    Raises CatalogError if the name is taken, NotSupportedError for a catalog without views,
    UnsupportedSqlError for a query over objects of this session, and what binding it raises.
    """
    catalog, identifier, old = _found(statement.view, "CREATE VIEW", services)
    if old is not None and statement.if_not_exists:
        return Modified(note=f"{statement.view.text} already exists; nothing was done")
    if old is None and statement.alters:
        return _missing(statement.view, statement.lenient)
    if old is not None and not statement.or_replace:
        raise CatalogError(f"there is a view {statement.view.text} already")
    _check_sources(statement, old, services)
    new = _new(statement, catalog, services)
    views = view_changes(catalog, "CREATE VIEW")
    if old is None:
        views.create_view(catalog, identifier, new)
    else:
        views.replace_view(catalog, old, new)
    return Modified()


def alter_view(statement: AlterStoredView, services: StatementServices) -> Modified:
    """Rename a view, or change its properties; its query stays.

    Raises ProgrammingError for a missing view or property, CatalogError if the new name is taken,
    NotSupportedError, CommitConflictError.
    """
    catalog, _, old = _found(statement.view, "ALTER VIEW", services)
    if old is None:
        return _missing(statement.view, statement.lenient)
    if statement.new is None:
        own, unset = old.metadata.properties, statement.unset
        there = properties_to_unset(own, unset, "view", if_exists=statement.if_exists)
        if statement.set or there:
            views = view_changes(catalog, "ALTER VIEW")
            views.change_properties(catalog, old, dict(statement.set), there)
        return Modified()
    new = renamed_place(catalog, old.identifier, statement.new, "view", services)
    view_changes(catalog, "ALTER VIEW").rename_view(catalog, old.identifier, new)
    return Modified()


def _found(
    view: TableName, what: str, services: StatementServices
) -> tuple[Catalog, Identifier, StoredView | None]:
    """The catalog and identifier of a view, and the view; None if there is none of its name."""
    catalog, identifier = new_place(services.state.names, view.parts)
    held = with_views(catalog)
    if held is None:
        raise refused(catalog, what)
    return catalog, identifier, held.load_view(identifier)


def _missing(view: TableName, if_exists: bool) -> Modified:
    if if_exists:
        return Modified(note=f"there is no view {view.text}; nothing was done")
    raise ProgrammingError(f"there is no view {view.text}")


def drop_stored_view(statement: DropStoredView, services: StatementServices) -> Modified:
    """Remove a view from its catalog; its metadata files stay."""
    name = statement.view.text
    found = services.query.wait_for(lambda: services.state.names.open_view(statement.view.parts))
    if found is None:
        return _missing(statement.view, statement.if_exists)
    catalog, _ = new_place(services.state.names, statement.view.parts)
    gone = view_changes(catalog, "DROP VIEW").drop_view(catalog, found[0].identifier)
    if not gone and not statement.if_exists:
        raise ProgrammingError(f"there is no view {name} any more")
    return Modified()


def _check_sources(
    statement: CreateStoredView, old: StoredView | None, services: StatementServices
) -> None:
    """Refuse a query over what only this session can read: files, paths, variables, own names."""
    query, names = statement.query, services.state.names
    with statement.query.sources.placing():
        if query.files:
            raise UnsupportedSqlError(
                "files in a view of a catalog",
                hint="COPY t FROM 'file'",
                offset=query.files[0].offset,
            )
        if reads_variables(query):
            raise _of_session("getvariable()")
        for each in query.references:
            own = services.state.temporary.find(each.parts) is not None
            given = ".".join(each.parts).lower() in services.query.tables
            if own or given or each.path or names._registered_path(each.parts) is not None:
                raise _of_session(each.name, each.offset)
            if old is None:
                continue
            inner = names.open_view(each.parts)
            if (
                inner is not None
                and inner[0].identifier == old.identifier
                and (inner[0].catalog == old.catalog)
            ):
                raise ProgrammingError(f"the view {statement.view.text} would read itself")


def _of_session(name: str, offset: int | None = None) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"{name} in a view of a catalog, which only this session knows",
        hint="CREATE TEMP VIEW",
        offset=offset,
    )


def _new(statement: CreateStoredView, catalog: Catalog, services: StatementServices) -> NewView:
    with statement.query.sources.placing():
        result, scans = services.run(statement.query)
        with closing(result):
            for each in scans:
                if each.frame is not None:
                    raise _of_session(each.table.name)
            columns = [each.name for each in result.columns]
            fields = result_fields(result.columns)
    properties = dict(statement.properties)
    if statement.columns:
        if len(statement.columns) != len(fields):
            raise ProgrammingError(
                f"the view names {len(statement.columns)} columns, its query has {len(fields)}"
            )
        fields = tuple(
            replace(field, name=name, doc=comment)
            for field, (name, comment) in zip(fields, statement.columns, strict=True)
        )
        if any("," in each for each in columns):
            raise UnsupportedSqlError("a list of columns over one with a comma in its name")
        properties[_QUERY_COLUMNS] = ",".join(columns)
    used, namespace = services.state.names.place
    current = services.state.names.catalog if used is None else None
    reached = used if used is not None else None if current is None else current.name
    return NewView(
        with_fresh_ids(Schema(fields)),
        statement.text,
        (services.dialect or _OWN).lower().replace("icesql", _OWN),
        namespace,
        None if reached == catalog.name else reached,
        properties,
        engine_summary(),
    )
