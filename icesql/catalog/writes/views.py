"""Which kinds of catalogs can create, change and drop views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icesql.errors import NotSupportedError

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog


def view_changes(catalog: Catalog, what: str) -> Any:
    """The module with the changes of views in this kind of catalog; ``what`` is the statement.

    Its functions are ``create_view``, ``replace_view``, ``change_properties``, ``rename_view`` and
    ``drop_view``. Raises NotSupportedError for kinds of catalogs without changes of views.
    """
    from icesql.catalog.sqlite import SqliteCatalog

    if isinstance(catalog, SqliteCatalog):
        from icesql.catalog.writes import sqlite_views

        return sqlite_views
    from icesql.catalog.rest import views
    from icesql.catalog.rest.catalog import RestCatalog

    if not isinstance(catalog, RestCatalog):
        raise refused(catalog, what)
    return views


def refused(catalog: Catalog, what: str) -> NotSupportedError:
    """Error for catalogs in which icesql cannot create views."""
    return NotSupportedError(
        f"{what} in catalog {catalog.name}, which is of kind {catalog.kind}: REST catalogs and "
        "SQLite files take views; CREATE TEMP VIEW makes one for this connection"
    )
