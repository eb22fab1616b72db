"""PyIcebergCatalog: every other kind of catalog, configured in the user's .pyiceberg.yaml.

PyIceberg imports and calls classes that properties name, and merges a table's properties into its
own. Therefore properties of tables never reach it: only the user's configuration opens files.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from icesql.catalog.client_errors import is_foreign, is_missing, translated
from icesql.catalog.configuration import kind_of, names_code, of_storage
from icesql.catalog.identifiers import ByNamespace
from icesql.catalog.rest.storage_properties import storage_properties
from icesql.catalog.table import (
    Catalog,
    Identifier,
    StoredView,
    Table,
    confining_roots,
    table_from_metadata,
)
from icesql.catalog.writes.pyiceberg import PyIcebergChanges
from icesql.errors import (
    CatalogError,
    Error,
    MissingExtraError,
    NotSupportedError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
)
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.metadata.views import parse_view
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact_urls, without_secrets
from icesql.storage.open import Reroot, Storage, is_local
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as ForeignCatalog
    from pyiceberg.table import Table as ForeignTable


# Properties that determine the kind of a catalog.
_KINDS_SAID: Final = frozenset({"uri", "type", "py-catalog-impl"})
# Arguments of PyIceberg's catalogs that are not properties.
_ARGUMENTS: Final = frozenset({"self", "name", "client"})
# Retries of a load whose metadata file has been deleted meanwhile.
_LOOKS: Final = 3
_NO_SUCH_TABLE: Final = ("NoSuchTableError", "NoSuchNamespaceError", "NoSuchIdentifierError")


def open_pyiceberg(
    name: str,
    given: dict[str, Any],
    merged: dict[str, Any],
    cache: BoundedCache | None = None,
    confine: bool | Roots = False,
    *,
    is_named: bool = True,
) -> Catalog:
    """The catalog with the properties ``given``, ``merged`` with those that are configured.

    Unless it ``is_named``, a database chooses the name, if it holds only one catalog.
    """
    what = f"catalog {name}"
    if _KINDS_SAID.isdisjoint(merged):
        raise CatalogError(_no_kind(what, merged))
    own = {"client"} if "py-catalog-impl" in merged else set()
    for each in sorted(_ARGUMENTS & merged.keys() - own):
        raise CatalogError(
            f'{what}: "{each}" is no property of a catalog; --catalog NAME (in Python the first '
            "argument) chooses it by name"
        )
    if "uri" in merged and (driven := _with_driver(str(merged["uri"]), what)) != merged["uri"]:
        given["uri"] = merged["uri"] = driven
    _quiet()
    with _translated(what, merged):
        from pyiceberg.catalog import load_catalog

        foreign = load_catalog(name, **given)
        held = [] if is_named else held_names(foreign)
        if held and name not in held:
            if len(held) > 1:
                raise CatalogError(
                    f"the database holds several catalogs: {', '.join(held)}; choose one by "
                    "name (--catalog NAME)"
                )
            foreign.close()
            name = held[0]
            foreign = load_catalog(name, **merged)
    return PyIcebergCatalog(foreign, name, merged, cache, confine)


def _no_kind(what: str, properties: Mapping[str, Any]) -> str:
    """The message for properties that name no catalog, such as only a bucket."""
    place = redact_urls(str(properties.get("warehouse") or ""))
    hint = (
        "name one with --uri (in Python uri=), such as https://host/catalog or "
        "sqlite:///catalog.db, or configure one in .pyiceberg.yaml"
    )
    if not place:
        return f"{what}: its properties name no catalog; {hint}"
    path = f"{place.rstrip('/')}/…"
    return (
        f"{what}: the warehouse {place} alone is no catalog; {hint}. "
        f"To read one table without a catalog, use iceberg_scan('{path}')"
    )


def held_names(foreign: Any) -> list[str]:
    """The catalog names that have tables in a SQL catalog's database; none for other kinds."""
    engine = getattr(foreign, "engine", None)
    if engine is None:
        return []
    with engine.connect() as database:
        rows = database.exec_driver_sql("SELECT DISTINCT catalog_name FROM iceberg_tables")
        return sorted(str(row[0]) for row in rows)


def _with_driver(uri: str, what: str) -> str:
    """``postgresql://`` with an installed driver: SQLAlchemy's default may be missing."""
    found = re.match(r"postgres(?:ql)?://", uri)
    if found is None:
        return uri
    for driver in ("psycopg2", "psycopg"):
        if find_spec(driver) is not None:
            return f"postgresql+{driver}://{uri[found.end() :]}"
    raise MissingExtraError(f"{what}: the package psycopg2 that it needs", extra="sql-postgres")


def _quiet() -> None:
    """Clients that also log the errors they raise do so only if logging is configured."""
    for client in ("pyiceberg", "thrift"):
        logger = logging.getLogger(client)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


class PyIcebergCatalog(ByNamespace, PyIcebergChanges):
    """A catalog accessed through PyIceberg; icesql parses the metadata files that it can read."""

    def __init__(
        self,
        foreign: ForeignCatalog,
        name: str,
        properties: Mapping[str, Any] | None = None,
        cache: BoundedCache | None = None,
        confine: bool | Roots = False,
    ) -> None:
        self.name, self.cache, self.confine = name, cache, confine
        self._foreign, self._properties = foreign, dict(properties or {})
        _keep_own_files(foreign, self._properties)
        self.kind = kind_of(self._properties)

    def __repr__(self) -> str:
        return f"PyIcebergCatalog({self.name!r})"

    def tables_in(self, namespace: Identifier) -> list[Identifier]:
        """The tables directly in a namespace, sorted."""
        with self._calling():
            return sorted(tuple(table) for table in self._foreign.list_tables(namespace))

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; the storage has the credentials that the catalog vended."""
        wanted = tuple(identifier)
        try:
            table = self._loaded(wanted)
        except CatalogError as error:
            if not is_missing(error.__cause__, *_NO_SUCH_TABLE):
                raise
            wanted = self.other_spelling(wanted, error)
            table = self._loaded(wanted)
        return self._table(wanted, table)

    def _loaded(self, identifier: Identifier) -> ForeignTable:
        """The table as PyIceberg reads it.

        Writers may delete old metadata files: if the file is gone, the catalog is read again.
        """
        with self._calling():
            for _ in range(_LOOKS):
                with suppress(FileNotFoundError):
                    return self._foreign.load_table(identifier)
            return self._foreign.load_table(identifier)

    def views_in(self, namespace: Identifier) -> list[Identifier]:
        """The views directly in a namespace; none if PyIceberg does not support this kind's."""
        if not hasattr(self._foreign, "list_views"):
            return []
        try:
            with self._calling():
                return sorted(tuple(each) for each in self._foreign.list_views(namespace))
        except (CatalogError, NotImplementedError):
            return []

    def load_view(self, identifier: Sequence[str]) -> StoredView | None:
        """As ``HasViews.load_view``."""
        if not hasattr(self._foreign, "load_view") or len(identifier) < 2:
            return None
        try:
            with self._calling():
                view = self._foreign.load_view(tuple(identifier))
        except (CatalogError, NotImplementedError):
            return None
        data = view.metadata.model_dump_json(by_alias=True).encode()
        metadata = parse_view(data, f"metadata sent by catalog {self.name}")
        return StoredView(tuple(identifier), metadata, self.name)

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """As ``Catalog.drop``."""
        try:
            with self._calling():
                self._foreign.drop_table(tuple(identifier))
        except CatalogError as error:
            if is_missing(error.__cause__, *_NO_SUCH_TABLE):
                raise TableNotFoundError(".".join(identifier)) from error
            raise

    def close(self) -> None:
        """As ``Catalog.close``."""
        with self._calling():
            self._foreign.close()

    def empty_hint(self) -> str:
        """Why there may be no tables: a SQL database separates tables by catalog name."""
        with self._calling():
            held = held_names(self._foreign)
        others = [name for name in held if name != self._foreign.name]
        if not others:
            return f"catalog {self.name} has no tables"
        return (
            f'its database has no tables of a catalog "{self._foreign.name}", but of '
            f"{', '.join(others)}; pass that name (--catalog {others[0]})"
        )

    def namespaces_in(self, above: Identifier) -> list[Identifier]:
        """The namespaces directly in one, or for () those of the first level: one request."""
        try:
            with self._calling():
                return [tuple(each) for each in self._foreign.list_namespaces(above)]
        except CatalogError:
            if above:  # Glue and Hive have one level, and fail for nested namespaces
                return []
            raise

    def _table(self, identifier: Identifier, table: ForeignTable) -> Table:
        location = table.metadata_location
        properties = of_storage(self._foreign.properties)
        if sent := getattr(table, "config", None):  # from a server, through a class of the user
            place = location or table.metadata.location
            properties = storage_properties(
                self.name, self._properties, self._foreign.properties, sent, (), place
            )
        if location:
            try:
                return table_from_metadata(
                    identifier,
                    location,
                    properties=properties,
                    cache=self.cache,
                    confine=self.confine,
                )
            except UnsupportedTableError:
                raise
            except (StorageError, NotSupportedError):
                pass  # only the catalog may read the file; it sent the same metadata
        data = table.metadata.model_dump_json().encode()
        path = location or f"metadata sent by catalog {self.name}"
        metadata = parse_metadata(data, path)
        # Without a metadata file, the location in the metadata is the table's folder.
        roots = confining_roots(self.confine, location or f"{metadata.location}/metadata/x")
        reroot = (
            Reroot(metadata.location, metadata.location, confine=roots)
            if is_local(metadata.location)
            else None
        )
        storage = Storage(properties, reroot, cache=self.cache, confine=roots)
        return Table(identifier, metadata, path, storage)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        # The foreign catalog's properties include those that the server sent.
        known = {**self._foreign.properties, **self._properties, **_tokens(self._foreign)}
        with _translated(f"catalog {self.name}", known):
            yield


def _keep_own_files(foreign: Any, given: Mapping[str, Any]) -> None:
    """Make PyIceberg open files with the user's properties only, not with those of a table.

    PyIceberg would merge them. It would import and call the class that a table's ``py-io-impl``
    names, and would send the user's tokens to an address or a proxy in the table's properties.
    ``given`` are the user's properties.
    """
    for key in [key for key in foreign.properties if names_code(key)]:
        if given and foreign.properties[key] != given.get(key):  # a server's
            del foreign.properties[key]
    opened = getattr(foreign, "_load_file_io", None)
    if opened is not None:
        foreign._load_file_io = lambda properties=None, location=None: opened(location=location)


def _tokens(foreign: Any) -> dict[str, Any]:
    """The tokens that a REST catalog obtained with its credential; none for other kinds."""
    adapter = getattr(getattr(foreign, "_session", None), "auth", None)
    manager = getattr(adapter, "auth_manager", None)
    holders = (manager, getattr(manager, "token_provider", None))
    tokens = [getattr(holder, "_token", None) for holder in holders]
    return {f"token-{n}": token for n, token in enumerate(tokens) if isinstance(token, str)}


@contextmanager
def _translated(what: str, properties: Mapping[str, Any]) -> Iterator[None]:
    """Translate errors of PyIceberg and of the client below it to icesql's, without secrets."""
    with without_secrets(properties):
        try:
            yield
        except Error:
            raise
        except Exception as error:
            if not is_foreign(error):
                raise
            raise translated(error, what, properties) from error
