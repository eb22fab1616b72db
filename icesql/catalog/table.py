"""Catalog, Table and StoredView: the interface of catalogs, and tables made from metadata files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from icesql.catalog.current_metadata import read_metadata
from icesql.frozen import Frozen
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Reroot, Storage, denied, is_local
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.views import ViewMetadata
    from icesql.iceberg.rest_json import ScanTasks


Identifier = tuple[str, ...]


class Reports(Protocol):
    """Receives the scan reports of a table."""

    def send(self, report: Mapping[str, Any]) -> None:
        """Send one report, in the background; never raises."""


class CatalogPlan(Frozen):
    """The plan of a scan by a catalog.

    ``answers`` are the responses, each with its tasks and the delete files that these tasks refer
    to by number. ``storage`` opens the files with the credentials that the catalog sent for this
    plan; None means the table's own storage. ``description`` explains to people how the plan came
    about.
    """

    answers: tuple[ScanTasks, ...]
    storage: Storage | None
    description: str


class Planning(Protocol):
    """A catalog that plans the scans of a table itself."""

    def plan(
        self, body: Mapping[str, Any], rows_wanted: int | None, query: QueryContext
    ) -> CatalogPlan:
        """The tasks for a PlanTableScanRequest.

        With ``rows_wanted``, no more tasks are fetched once the fetched ones have so many rows.
        Raises CatalogError and QueryCancelledError.
        """


class Table(Frozen):
    """One table as it was when its metadata was read; load it again to see later commits.

    ``identifier`` is namespace and name, or the one name a path was given. ``storage`` opens the
    paths that the metadata names, even if the table was moved. ``reports`` receives scan reports,
    if the catalog collects them. ``planning`` plans the scans of the table instead of icesql, if
    the catalog requires it or the user chooses it. ``document`` is, inside a transaction, the JSON
    of metadata that is not yet in a file.
    """

    identifier: Identifier
    metadata: TableMetadata
    metadata_location: str
    storage: Storage
    reports: Reports | None = None
    planning: Planning | None = None
    document: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The identifier with dots, as messages show it."""
        return ".".join(self.identifier)

    @property
    def is_in_store(self) -> bool:
        """True if the table's files are read over a network."""
        return self.storage.reroot is None and not is_local(self.metadata.location)


class Catalog(Protocol):
    """Named tables; every failure is a CatalogError unless said otherwise.

    Catalogs cache no state between calls: ``load`` returns the committed state of that moment.
    """

    @property
    def name(self) -> str:
        """The name of the catalog in SQL."""

    @property
    def kind(self) -> str:
        """The kind of catalog, such as ``rest`` or ``directory``."""

    def namespaces(self) -> list[Identifier]:
        """All namespaces at every depth, sorted; tables outside any are in ``()``, not listed."""

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """Full identifiers of the tables directly in a namespace, or of all tables; sorted."""

    def load(self, identifier: Sequence[str]) -> Table:
        """The current table; TableNotFoundError with the nearest names when there is none."""

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """Apply ``change`` if the table's metadata still is ``base_location``, in one step.

        ``base_location`` is the ``Table.metadata_location`` that the change was made from; None
        creates the table, and returns a Conflict if one exists. Failures before the change was
        sent, and final refusals of it, are errors.

        Raises CatalogError, StorageError, NotSupportedError if tables of this kind of catalog are
        read-only.
        """

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """The location and storage for the files of a table that ``change`` will create.

        The change contains a location if the user gave one. Raises CatalogError if the namespace is
        missing, the table exists, or the location has files of another table.
        """

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """Remove the table from the catalog; its files stay.

        With ``purge``, catalogs that can delete the files do so; others leave them to the caller.
        Raises TableNotFoundError.
        """

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """Give a table another name, in another namespace if need be.

        Raises TableNotFoundError, CatalogError where a table of the new name exists,
        NotSupportedError.
        """

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """Make a namespace. Raises CatalogError where it exists."""

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """Remove an empty namespace. Raises CatalogError where it is missing or not empty."""

    def close(self) -> None:
        """Close connections; the catalog is not used afterwards."""


def table_from_metadata(
    identifier: Sequence[str],
    metadata_location: str,
    *,
    properties: Mapping[str, str] | None = None,
    cache: BoundedCache | None = None,
    confine: bool | Roots = False,
) -> Table:
    """The table of one metadata file; on this machine, re-rooted to the folder of that file.

    ``confine`` are the roots that must contain this file and every path in it; True means the
    table's folder, False no limit. Raises AccessDeniedError.
    """
    roots = confining_roots(confine, metadata_location)
    plain = Storage(properties, cache=cache, confine=roots)
    metadata = read_metadata(metadata_location, plain)
    reroot = None
    if is_local(metadata_location):
        metadata_location = plain.location(metadata_location)
        reroot = Reroot(metadata.location, table_folder(metadata_location), confine=roots)
    storage = Storage(properties, reroot, cache=cache, confine=roots)
    return Table(tuple(identifier), metadata, metadata_location, storage)


def confining_roots(confine: bool | Roots, metadata_location: str) -> Roots | None:
    """The roots of ``confine`` for the table of one metadata file, None for no limit.

    Raises AccessDeniedError for a file whose folder cannot be a table's folder.
    """
    if confine is True:
        folder = table_folder(metadata_location)
        try:
            if folder != "/":  # that would be no limit
                return Roots.of([folder])
        except ValueError:  # a bucket alone, or none
            pass
        raise denied(metadata_location)
    return confine or None


def table_folder(metadata_location: str) -> str:
    """The table's folder: the parent of "metadata", else the folder of the metadata file."""
    folder = metadata_location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return (above if last == "metadata" else folder) or "/"


# ------------------------------------------------------------------ views


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
