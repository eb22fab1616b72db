"""Registers an existing metadata file as a table of a catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from icesql.catalog.writes.change import Conflict, Swap, Unknown
from icesql.context import QueryContext
from icesql.errors import CatalogError, CommitStateUnknownError, Error, NotSupportedError
from icesql.storage.open import is_local, split_path

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table


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
