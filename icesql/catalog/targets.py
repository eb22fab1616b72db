"""Resolves the names in statements that change or create tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icesql.errors import UnsupportedTableError

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
