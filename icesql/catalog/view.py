"""Views of catalogs: their names and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from icesql.catalog.table import Catalog, Identifier
from icesql.frozen import Frozen

if TYPE_CHECKING:
    from icesql.iceberg.metadata.view_metadata import ViewMetadata


class StoredView(Frozen):
    """A view of a catalog; ``catalog`` is the name of that catalog in SQL."""

    identifier: Identifier
    metadata: ViewMetadata
    catalog: str

    @property
    def name(self) -> str:
        """The identifier with dots, as messages show it."""
        return ".".join(self.identifier)


class HasViews(Protocol):
    """A catalog that may have views."""

    @property
    def name(self) -> str:
        """The name of the catalog in SQL."""

    def views(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """Full identifiers of the views directly in a namespace, or of all views; sorted."""

    def load_view(self, identifier: Sequence[str]) -> StoredView | None:
        """The current view; None if there is none of this name. Raises CatalogError."""


def with_views(catalog: Catalog | None) -> HasViews | None:
    """The catalog, if it is of a kind that has views."""
    found: Any = catalog
    return found if hasattr(catalog, "load_view") else None
