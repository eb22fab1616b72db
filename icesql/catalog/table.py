"""Table and Catalog: what a catalog gives, and a table made from one metadata file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from icesql.catalog.current_metadata import read_metadata
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Reroot, Storage, denied, is_local
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.content_file import ScanTasks

Identifier = tuple[str, ...]


class Reports(Protocol):
    """Where reports of the scans of a table go."""

    def send(self, report: Mapping[str, Any]) -> None:
        """Send one, in the background; never raises."""


class CatalogPlan(Struct, frozen=True):
    """The plan of a scan by a catalog.

    ``answers`` hold the tasks, each with the delete files that its own tasks refer to by number.
    ``storage`` opens the files, where the catalog gave credentials for this plan; None for the
    table's own. ``description`` says for people how the plan came.
    """

    answers: tuple[ScanTasks, ...]
    storage: Storage | None
    description: str


class Planning(Protocol):
    """A catalog that plans the scans of a table itself."""

    def plan(
        self, body: Mapping[str, Any], rows_wanted: int | None, query: QueryContext
    ) -> CatalogPlan:
        """The tasks for a PlanTableScanRequest; of them as many as have so many rows, if any do.

        Raises CatalogError and QueryCancelledError.
        """


class Table(Struct, frozen=True):
    """One table as it was when its metadata was read; load it again to see later commits.

    ``identifier`` is namespace and name, or the one name a path was given. ``storage`` opens the
    paths that the metadata names, moved or not. ``reports`` takes what scans read, where the
    catalog wants to know. ``planning`` plans the scans of the table in place of icesql, where the
    catalog demands that or the user asks for it. ``document`` is the JSON of metadata that no
    file holds yet, inside of a transaction.
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
        """Whether its files are asked for over a network."""
        return self.storage.reroot is None and not is_local(self.metadata.location)


class Catalog(Protocol):
    """Named tables; every failure is a CatalogError unless said otherwise.

    Nothing is remembered between calls: ``load`` sees what is committed at that moment.
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
        """Full identifiers of the tables directly in a namespace, sorted; of all without one."""

    def load(self, identifier: Sequence[str]) -> Table:
        """The current table; TableNotFoundError with the nearest names when there is none."""

    def load_without_waiting(self, identifier: Sequence[str]) -> Table | None:
        """As ``load`` of an exact name, if nobody has to be waited for; None for all others."""

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """Apply ``change`` if the table's metadata still is ``base_location``, in one step.

        ``base_location`` is ``Table.metadata_location`` of what the change was made from; None
        creates the table, and is a Conflict where there is one. Every failure before anything was
        sent, or that refuses the change for good, is an error.

        Raises CatalogError, StorageError, NotSupportedError where tables of this kind of catalog
        are only read.
        """

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """Where the files of a table go that ``change`` will create.

        The change says the location if the user does. Raises CatalogError where the namespace is
        missing, the table exists, or files of others are there.
        """

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """Take the table out of the catalog; its files stay.

        With ``purge`` a catalog that deletes files itself does so; others leave them to the
        caller. Raises TableNotFoundError.
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
        """Let go of connections; the catalog is not used afterwards."""


def table_from_metadata(
    identifier: Sequence[str],
    metadata_location: str,
    *,
    properties: Mapping[str, str] | None = None,
    cache: BoundedCache | None = None,
    confine: bool | Roots = False,
) -> Table:
    """The table of one metadata file, re-rooted to where that lies if it is on this machine.

    ``confine`` are the roots that this file and every path in it must lie under; True stands for
    the folder that the table lies in, False for no limit. Raises AccessDeniedError.
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

    Raises AccessDeniedError for a file whose folder is no table's.
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
    """The folder a table lies in: above "metadata", else the one the metadata file is in."""
    folder = metadata_location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return (above if last == "metadata" else folder) or "/"
