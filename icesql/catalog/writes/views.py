"""Creates, changes and drops views, in the kinds of catalogs that support that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icesql.errors import NotSupportedError

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier
    from icesql.catalog.view import StoredView
    from icesql.iceberg.metadata.view_changes import NewView


def put_view(
    catalog: Catalog, identifier: Sequence[str], new: NewView, old: StoredView | None
) -> None:
    """Create a view, or add a version to ``old``.

    Raises CatalogError if a table or view of its name exists, NotSupportedError for kinds of
    catalogs without changes of views, CommitConflictError.
    """
    from icesql.catalog.sqlite import SqliteCatalog

    wanted = tuple(identifier) if old is None else old.identifier
    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views as sqlite

        if old is None:
            sqlite.create_view(catalog, wanted, new)
        else:
            sqlite.replace_view(catalog, wanted, new)
        return
    from icesql.catalog.rest import views as rest
    from icesql.catalog.rest.catalog import RestCatalog

    if not isinstance(catalog, RestCatalog):
        raise refused(catalog, "CREATE VIEW")
    if old is None:
        rest.create_view(catalog, wanted, new)
    else:
        rest.replace_view(catalog, wanted, new, old.metadata)


def drop_view(catalog: Catalog, identifier: Sequence[str]) -> bool:
    """Remove a view from its catalog; False if there was none. Raises as ``put_view``."""
    from icesql.catalog.sqlite import SqliteCatalog

    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views as sqlite

        return sqlite.drop_view(catalog, tuple(identifier))
    from icesql.catalog.rest import views as rest
    from icesql.catalog.rest.catalog import RestCatalog

    if not isinstance(catalog, RestCatalog):
        raise refused(catalog, "DROP VIEW")
    return rest.drop_view(catalog, tuple(identifier))


def change_view_properties(
    catalog: Catalog, old: StoredView, given: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Set and remove properties of a view. Raises as ``put_view``."""
    from icesql.catalog.sqlite import SqliteCatalog

    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views as sqlite

        return sqlite.change_properties(catalog, old.identifier, given, removed)
    from icesql.catalog.rest import views as rest
    from icesql.catalog.rest.catalog import RestCatalog

    if not isinstance(catalog, RestCatalog):
        raise refused(catalog, "ALTER VIEW")
    return rest.change_properties(catalog, old.identifier, given, removed, old.metadata)


def rename_view(catalog: Catalog, identifier: Identifier, new: Identifier) -> None:
    """Rename a view. Raises as ``put_view``."""
    from icesql.catalog.sqlite import SqliteCatalog

    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views as sqlite

        return sqlite.rename_view(catalog, identifier, new)
    from icesql.catalog.rest import views as rest
    from icesql.catalog.rest.catalog import RestCatalog

    if not isinstance(catalog, RestCatalog):
        raise refused(catalog, "ALTER VIEW")
    return rest.rename_view(catalog, identifier, new)


def refused(catalog: Catalog, what: str) -> NotSupportedError:
    """Error for catalogs in which icesql cannot create views."""
    return NotSupportedError(
        f"{what} in catalog {catalog.name}, which is of kind {catalog.kind}: REST catalogs and "
        "SQLite files take views; CREATE TEMP VIEW makes one for this connection"
    )
