"""Targets of statements: tables to change, places of new ones, and catalogs that take views."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from icesql.catalog.writes.change import Conflict, Swap, Unknown
from icesql.context import QueryContext
from icesql.errors import (
    CatalogError,
    CommitStateUnknownError,
    Error,
    NotSupportedError,
    UnsupportedTableError,
)
from icesql.storage.open import is_local, split_path

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Catalog, Identifier, Table


def table_to_change(names: SearchPath, parts: Sequence[str]) -> tuple[Catalog, Table]:
    """The catalog of a table, and the table freshly loaded, for a commit.

    Raises as ``open_table``, UnsupportedTableError for a registered table, and NotSupportedError
    for a second table in a transaction that can change only one.
    """
    if names._registered_path(parts) is not None:
        raise UnsupportedTableError(
            f"writing to {'.'.join(parts)}, which is registered by its path: no catalog says "
            "which of its metadata files is the current one"
        )
    catalog, table = names._catalog_table(tuple(parts), load=load_to_change)
    transaction = names._transaction()
    if transaction is not None:
        transaction.check_target(catalog, table.identifier)
    return catalog, names._noted(table)


def load_to_change(catalog: Catalog, identifier: Sequence[str]) -> Table:
    """As ``Catalog.load``, but faster where the catalog can be: the commit checks again."""
    # Looked up on the class: a wrapper of a catalog, such as a transaction's, has its own tables
    # and may only pass this method through.
    load = getattr(type(catalog), "load_to_change", None)
    found: Table = catalog.load(identifier) if load is None else load(catalog, identifier)
    return found


def new_place(names: SearchPath, parts: Identifier) -> tuple[Catalog, Identifier]:
    """The catalog and identifier for a new table. Raises ProgrammingError."""
    catalog, namespace = namespace_place(names, parts[:-1])
    return catalog, (*(namespace if len(parts) > 1 else names.place[1]), parts[-1])


def make_missing_catalog(names: SearchPath, parts: Identifier) -> None:
    """Create the SQLite file that the connection's ``uri`` names, for its first namespace."""
    from icesql.catalog.sqlite import sqlite_file

    uri = names.given.get("uri")
    file = None if uri is None else sqlite_file(uri)
    of_another = names.place[0] is not None or (len(parts) > 1 and names._others.has(parts[0]))
    if file is not None and not os.path.lexists(file) and not of_another:
        from icesql.catalog.writes.sqlite import make_catalog

        make_catalog(file)


def namespace_place(names: SearchPath, parts: Identifier) -> tuple[Catalog, Identifier]:
    """The catalog and name of a namespace that need not exist. Raises ProgrammingError."""
    used, others = names.place[0], names._others
    current = None if used is None else others.named(used)
    if current is not None and not (len(parts) > 1 and others.has(parts[0].lower())):
        return current, parts
    if names.catalog is not None and len(parts) < 2 and not others.has("".join(parts)):
        return names.catalog, parts
    catalog, rest, _ = names.place_of(parts)
    return catalog, rest


# ------------------------------------------------------------------ kinds that take views


def view_changes(catalog: Catalog, what: str) -> Any:
    """The module with the changes of views in this kind of catalog; ``what`` is the statement.

    Its functions are ``create_view``, ``replace_view``, ``change_properties``, ``rename_view`` and
    ``drop_view``. Raises NotSupportedError for kinds of catalogs without changes of views.
    """
    from icesql.catalog.sqlite import SqliteCatalog

    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views

        return sqlite_views
    from icesql.catalog.rest import catalog as rest

    if not isinstance(catalog, rest.RestCatalog):
        raise refused(catalog, what)
    return rest


def refused(catalog: Catalog, what: str) -> NotSupportedError:
    """Error for catalogs in which icesql cannot create views."""
    return NotSupportedError(
        f"{what} in catalog {catalog.name}, which is of kind {catalog.kind}: REST catalogs and "
        "SQLite files take views; CREATE TEMP VIEW makes one for this connection"
    )


# ------------------------------------------------------------------ registration


def register(
    catalog: Catalog, identifier: Sequence[str], location: str, query: QueryContext
) -> Table:
    """Register a metadata file and load the table; if loading fails, unregister it.

    Raises NotSupportedError for a catalog of folders, CatalogError if the namespace is missing or
    the name is taken, CommitStateUnknownError if the outcome is unknown, and the errors of loading
    the table.
    """
    name = ".".join(identifier)
    # It adds a table with an unchanged metadata file; Conflict if a table has that name.
    add: Callable[[Sequence[str], str], Swap] | None = getattr(catalog, "register", None)
    if add is None:
        raise NotSupportedError(
            f"not supported: register_table in a catalog of kind {catalog.kind}, whose tables are "
            "the folders that it finds: copy the table to a folder of its own there "
            "(icesql copy TABLE TO FOLDER)"
        )
    if tuple(identifier[:-1]) not in {(), *catalog.namespaces()}:
        raise CatalogError(f"there is no namespace {'.'.join(identifier[:-1])}")
    if is_local(location) and not split_path(location)[0]:
        location = os.path.abspath(location)
    found = add(identifier, location)
    if isinstance(found, Unknown):
        with suppress(Error):
            seen = query.wait_for(lambda: catalog.load(identifier))
            if seen.metadata_location == location:
                return seen
        raise CommitStateUnknownError(
            f"register_table of {name} was sent and its outcome is unknown: {found.reason}; look "
            "whether the table is there before running the statement again"
        )
    if isinstance(found, Conflict):
        raise CatalogError(f"{name} already exists")
    try:
        return query.wait_for(lambda: catalog.load(identifier))
    except Error:
        catalog.drop(identifier)
        raise
