"""Resolves table names of one session: to registered tables first, then in the catalogs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from icesql.access import Access
from icesql.catalog.configuration import (
    ENDPOINTS,
    configuration,
    kind_of,
    of_storage,
    of_store,
)
from icesql.catalog.identifiers import listed_name
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    InterfaceError,
    ProgrammingError,
    TableNotFoundError,
    near_or_all,
    nearest,
    similar_names,
)
from icesql.frozen import Frozen
from icesql.storage.open import denied, is_local
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier, StoredView, Table
    from icesql.context import QueryContext
    from icesql.storage.cache import BoundedCache


# ------------------------------------------------------------------ other catalogs


class OtherCatalogs:
    """Configured catalogs by case-insensitive name; each is opened at its first use.

    ``access`` determines which of them SQL may open; the others are treated as not configured.
    """

    def __init__(self, cache: BoundedCache, access: Access) -> None:
        self._cache, self._access = cache, access
        self._opened: dict[str, Catalog] = {}
        self._closed = False
        self._lock = threading.Lock()

    def configured(self) -> dict[str, Mapping[str, Any]]:
        """The properties of each that SQL may open. Raises CatalogError for a broken file."""
        found = configuration().catalogs
        return {name: found[name] for name in sorted(found) if self._access.allows_catalog(name)}

    def has(self, name: str) -> bool:
        """True if a catalog of that name is configured and SQL may open it."""
        try:
            return name.lower() in self.configured()
        except CatalogError:
            return False  # a broken file configures no catalog

    def named(self, name: str) -> Catalog | None:
        """The catalog of a name, None where none is configured or allowed.

        Raises CatalogError, MissingExtraError for one that cannot be opened.
        """
        from icesql.catalog.open import open_catalog

        key = name.lower()
        found = self._opened.get(key)
        if found is not None:
            return found
        if not self.has(key):
            return None
        made = open_catalog(key, cache=self._cache, confine=self._access.confine)
        with self._lock:
            kept = self._opened.setdefault(key, made)
            closed = self._closed
        if kept is not made or closed:
            made.close()
        return kept

    @property
    def opened(self) -> list[Catalog]:
        """The catalogs opened so far."""
        with self._lock:
            return list(self._opened.values())

    def close(self) -> None:
        """Close the opened catalogs, without waiting for one that another thread is opening."""
        with self._lock:
            self._closed = True
            opened = list(self._opened.values())
        for each in opened:
            each.close()


# ------------------------------------------------------------------ names of a session


# Loads the table of an identifier from a catalog.
Load = Callable[["Catalog", Sequence[str]], "Table"]


class PlaceOfView(Protocol):
    """Where the names in a view are looked up; see ``sql.statement.Place``."""

    @property
    def catalog(self) -> str | None:
        """The name of a catalog, None for the connection's own."""

    @property
    def namespace(self) -> Identifier:
        """The namespace of names that have none."""

    @property
    def stored(self) -> bool:
        """Whether the view is one of a catalog."""


class OpenTransaction(Protocol):
    """The changes that are not committed yet; see ``commit.transaction.Transaction``."""

    def catalog(self, catalog: Catalog) -> Catalog:
        """The catalog with these changes."""

    def check_target(self, seen: Catalog, identifier: Sequence[str]) -> None:
        """Raise NotSupportedError for one table more than the transaction can change."""


class ListedTables(Frozen):
    """The tables of ``catalog``; ``refused`` are namespaces whose tables it does not list."""

    catalog: str
    tables: tuple[Identifier, ...]
    refused: tuple[tuple[Identifier, CatalogError], ...] = ()


class SearchPath:
    """The names of one session, in the order in which they are looked up.

    First the registered tables, then the current namespace and the whole catalog of the connection,
    then the other catalogs of the user's PyIceberg configuration. Catalogs are opened at their
    first use; ``access`` determines the names and paths that SQL may use. ``transaction`` returns
    the open transaction, whose changes the tables include, or None.
    """

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        cache: BoundedCache,
        access: Access,
        properties: Mapping[str, Any] | None = None,
        transaction: Callable[[], OpenTransaction | None] = lambda: None,
    ) -> None:
        self._access = access
        self._transaction = transaction
        # The connection's properties, which also open its tables by path.
        self.given: Mapping[str, Any] = dict(properties or {})
        # The target of the last USE: a catalog (None is the connection's own) and a namespace.
        self.place: tuple[str | None, Identifier] = None, ()
        self._open_catalog, self._opened = open_catalog, False
        self._catalog: Catalog | None = None
        self._closed = False
        self._others = OtherCatalogs(cache, access)
        self._registered: dict[str, str] = {}
        self._cache = cache
        self._lock = threading.Lock()
        self._properties: dict[str, Mapping[str, Any]] = {}

    @property
    def catalog(self) -> Catalog | None:
        """The catalog of the connection; None without one. Raises CatalogError."""
        if self._closed:
            raise InterfaceError("the connection is closed")
        if not self._opened:
            made = self._open_catalog(self._cache)
            # An abandoned query may get here late, after another thread opened or closed it.
            if not self._take(made) and made is not None:
                made.close()
        return self._catalog

    def _take(self, made: Catalog | None) -> bool:
        with self._lock:
            if self._opened:
                return False
            self._catalog, self._opened = made, True
            return True

    @property
    def storage_properties(self) -> list[Mapping[str, Any]]:
        """The storage properties of each opened table, vended credentials included, for masking."""
        return list(self._properties.values())

    def store_of(self, path: str, *, is_owners: bool = True) -> tuple[dict[str, str], bool]:
        """The properties that open a path, and whether they include those of the own catalog.

        They include the properties of the connection's configured catalog only if the owner of the
        connection wrote the path (``is_owners``) and it lies in that catalog's store. Such
        properties are valid only for the folder of the table there, not for other places that its
        metadata names. Raises CatalogError, and AccessDeniedError for somebody else's path that
        would be read from the wrong store without the catalog's endpoint.
        """
        given, name = of_storage(self.given), self.given.get("catalog")
        if name is None or is_local(path):
            return given, False
        said = {key: value for key, value in self.given.items() if value is not None}
        found = {**of_store({**configuration().catalog(name), **said}, path), **given}
        if found == given:
            return given, False
        if not is_owners and any(key.endswith(ENDPOINTS) for key in found.keys() - given.keys()):
            raise AccessDeniedError(
                "the store of the catalog opens no path of a view or of a service",
                argument="tables_by_path",
            )
        if is_owners:
            self._properties[path] = found
        return (found, True) if is_owners else (given, False)

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, whose changes the tables include."""
        return self._transaction() is not None

    def register(self, name: str, path: str | os.PathLike[str]) -> None:
        """Register the table at ``path`` as ``name``, which precedes the tables of catalogs."""
        self._registered[name] = os.fspath(path)

    def open_table(
        self, parts: Sequence[str], path: str | None = None, place: PlaceOfView | None = None
    ) -> Table:
        """The table of a name, or of a path, freshly loaded; ``place`` is that of a view.

        Raises TableNotFoundError with the nearest names, AccessDeniedError, CatalogError.
        """
        return self._noted(self._table(tuple(parts), path, place))

    def _noted(self, table: Table) -> Table:
        if table.storage.properties:
            # Vended credentials change: only the last ones of each table name are kept.
            self._properties[table.name] = table.storage.properties
        return table

    def load(
        self,
        parts: Sequence[str],
        path: str | None,
        query: QueryContext,
        place: PlaceOfView | None = None,
    ) -> Table:
        """As ``open_table``; a wait for another machine is abandoned when ``query`` ends."""
        if place is None and self.is_near(parts, path):
            return self.open_table(parts, path)
        is_own = not (place or path or self.place[0] or self._registered_path(parts))
        own = self._catalog if is_own else None
        at_once = None if own is None else getattr(self._seen(own), "load_without_waiting", None)
        found = None if at_once is None else at_once((*self.place[1], *parts))
        if found is not None:
            return self._noted(found)
        return query.wait_for(lambda: self.open_table(parts, path, place))

    def open_view(
        self, parts: Sequence[str], place: PlaceOfView | None = None
    ) -> tuple[StoredView, str | None] | None:
        """The catalog's view that a name resolves to, and that catalog's name; None if no view.

        The catalog's name is None for the connection's own. ``place`` as in ``open_table``. Raises
        CatalogError, CorruptFileError, StorageError, UnsupportedTableError.
        """
        from icesql.catalog.table import with_views

        for name, catalog, identifier in self._candidates(tuple(parts), place):
            held = with_views(catalog)
            found = None if held is None else held.load_view(identifier)
            if found is not None:
                return found, name
        return None

    def is_near(self, parts: Sequence[str], path: str | None = None) -> bool:
        """True if opening the table reads only files of this machine."""
        place = path or self._registered_path(parts)
        if place is not None:
            return is_local(place)
        if not self._opened or getattr(self._catalog, "may_wait", True):
            return False
        # A longer name may begin with the name of another catalog.
        return self.place[0] is None and len(parts) < 3

    def table_names(self) -> list[str]:
        """Every name that a query may use: registered tables and those of the catalog."""
        catalog = self.catalog
        listed = catalog.tables(None) if catalog is not None else []
        own = [(name,) for name in self._registered]
        return [listed_name(identifier) for identifier in (*own, *listed)]

    def tables_of(self, name: str) -> list[str]:
        """The tables of the catalog ``name``, each prefixed with that name.

        Raises ProgrammingError, CatalogError.
        """
        identifiers = self._named(name).tables(None)
        return [listed_name((name, *identifier)) for identifier in identifiers]

    def _named(self, name: str | None) -> Catalog:
        """The catalog of a name; None is that of the connection."""
        own = self.catalog
        is_own = name is None or (own is not None and own.name == name)
        found = own if is_own else self._others.named(str(name))
        if found is None:
            raise _no_catalog(name or "", self.catalog_kinds())
        return found

    def all_tables(self, name: str | None = None) -> ListedTables:
        """Every table of a catalog, as the parts of the name that a query writes.

        Without ``name``, the tables of the connection's own catalog. The catalog's name comes first
        where the table's name alone would mean another table. Raises ProgrammingError,
        CatalogError.
        """
        catalog = self._named(name)
        is_own = catalog is self._catalog
        shown = catalog.name if is_own else str(name)
        refused: list[tuple[Identifier, CatalogError]] = []
        try:
            identifiers = catalog.tables(None)
        except CatalogError:
            identifiers = []  # one of its namespaces may belong to another user
            for each in [(), *catalog.namespaces()]:
                try:
                    identifiers += catalog.tables(each)
                except CatalogError as error:
                    refused.append((each, error))
        tables = [
            each
            if is_own and self.place == (None, ()) and not self._registered_path(each)
            else (shown, *each)
            for each in identifiers
        ]
        return ListedTables(shown, tuple(tables), tuple(refused))

    def catalog_kinds(self) -> dict[str, str]:
        """The catalogs that SQL may name and what kind each is, the connection's own first."""
        own = self.catalog
        kinds = {} if own is None else {own.name: own.kind}
        configured = self._others.configured()
        return kinds | {
            name: kind_of(properties)
            for name, properties in configured.items()
            if name not in kinds
        }

    def place_of(self, parts: Identifier) -> tuple[Catalog, Identifier, str | None]:
        """Split the name of a namespace into a catalog, the rest, and the catalog's name.

        The catalog's name is None for the connection's own catalog. If the first part is both a
        namespace of the own catalog and the name of a catalog, it is the namespace. Raises
        ProgrammingError.
        """
        own = self.catalog
        first = parts[0].lower() if parts else ""
        is_own = own is not None and first == own.name.lower()
        if own is not None:
            named = is_own or self._others.has(first)
            # The namespaces are listed only if the first part may be the name of a catalog.
            if not named or any(each[0].lower() == first for each in own.namespaces() if each):
                return own, parts, None
            if is_own:
                return own, parts[1:], None
        other = self._others.named(first)
        if other is None:
            raise _no_catalog(parts[0] if parts else "", self.catalog_kinds())
        return other, parts[1:], first

    def find_place(self, parts: Identifier) -> tuple[str | None, Identifier]:
        """Resolve a name of USE: a catalog (None is the connection's own) and a namespace.

        Raises ProgrammingError.
        """
        catalog, rest, name = self.place_of(parts)
        if not rest:
            return name, ()
        known = catalog.namespaces()
        wanted = [part.lower() for part in rest]
        for each in known:
            if [part.lower() for part in each] == wanted:
                return name, each
        text = ".".join(rest)
        hint = nearest(text, (".".join(each) for each in known))
        where = f" in catalog {name}" if name is not None else ""
        raise ProgrammingError(f'namespace "{text}" not found{where}{hint}')

    def refuse(self) -> None:
        """Refuse further use of the connection's catalog."""
        self._closed = True

    def close(self) -> None:
        """Close the catalogs for good, without waiting for one that is being opened."""
        self.refuse()
        if self._catalog is not None:
            self._catalog.close()
        self._others.close()
        with self._lock:
            self._catalog, self._opened = None, True

    def _table(self, parts: Identifier, path: str | None, view: PlaceOfView | None) -> Table:
        from icesql.catalog.open import denied_path, open_table

        stored = view is not None and view.stored
        allowed = self._access.tables_by_path
        if path is not None and allowed is False:
            raise denied_path()
        place = path or (None if stored else self._registered_path(parts))
        if place is not None:
            is_owners = path is None or not (stored or self._access.service)
            properties, lent = self.store_of(place, is_owners=is_owners)
            confine = self._access.confine
            if lent and isinstance(confine, Roots) and not confine.hold(place):
                raise denied(place)
            return open_table(
                place,
                name=parts[-1],
                properties=properties,
                cache=self._cache,
                within=allowed if path is not None and isinstance(allowed, Roots) else None,
                confine=confine or lent,
            )
        return self._catalog_table(parts, view)[1]

    def _seen(self, catalog: Catalog) -> Catalog:
        transaction = self._transaction()
        return catalog if transaction is None else transaction.catalog(catalog)

    def _registered_path(self, parts: Sequence[str]) -> str | None:
        if len(parts) != 1:
            return None
        if parts[0] in self._registered:
            return self._registered[parts[0]]
        lower = {name.lower(): path for name, path in self._registered.items()}
        return lower.get(parts[0].lower())

    def _catalog_table(
        self,
        parts: Identifier,
        view: PlaceOfView | None = None,
        *,
        load: Load = lambda catalog, identifier: catalog.load(identifier),
    ) -> tuple[Catalog, Table]:
        missing: dict[Identifier, TableNotFoundError] = {}
        for used, found, identifier in self._candidates(parts, view):
            catalog = self._seen(found)
            try:
                return catalog, load(catalog, identifier)
            except TableNotFoundError as error:
                if used is not None and len(identifier) < len(parts):
                    similar = [f"{listed_name(parts[:1])}.{each}" for each in error.similar]
                    raise TableNotFoundError(
                        ".".join(parts), similar=similar, hint=error.hint
                    ) from error
                missing.setdefault(identifier if used is None else parts, error)
        if missing:
            # Two parts are most likely namespace and table, whatever USE has set.
            raise missing[parts if len(parts) > 1 else next(iter(missing))]
        name = ".".join(parts)
        raise TableNotFoundError(
            name,
            similar=similar_names(name, self._registered),
            hint="connect with a catalog or a warehouse, register_table(name, path), "
            "or read a path with iceberg_scan('path')",
        )

    def _candidates(
        self, parts: Identifier, view: PlaceOfView | None
    ) -> Iterator[tuple[str | None, Catalog, Identifier]]:
        """The meanings of a name, the likeliest first: a catalog, and the identifier there.

        The catalog's name comes first, None for the connection's own.
        """
        used, namespace = self.place if view is None else (view.catalog, view.namespace)
        stored = view is not None and view.stored
        own = _reached(self.catalog, parts, used, stored)
        if used is not None and (current := self._others.named(used)) is not None:
            for each in _meant(parts, namespace, stored):
                yield used, current, each
            namespace = ()
        if own is not None:
            for each in _meant(parts, namespace, stored):
                yield None, own, each
            if len(parts) > 1 and parts[0].lower() == own.name.lower():
                yield None, own, parts[1:]
        if len(parts) > 2 and (other := self._others.named(parts[0])) is not None:
            yield parts[0], other, parts[1:]


def _no_catalog(name: str, kinds: Mapping[str, str]) -> ProgrammingError:
    none = "connect with one, or configure one in .pyiceberg.yaml"
    hint = near_or_all(name, sorted(kinds)) if kinds else none
    return ProgrammingError(f'no catalog "{name}"; {hint}')


def _meant(parts: Identifier, namespace: Identifier, stored: bool) -> list[Identifier]:
    """The full names that a name may resolve to, the likeliest first.

    By the view spec, the namespace of a view applies only to names without a namespace.
    """
    found = [*dict.fromkeys([(*namespace, *parts), parts])]
    return found[::-1] if stored and len(parts) > 1 else found


def _reached(
    own: Catalog | None, parts: Identifier, used: str | None, stored: bool
) -> Catalog | None:
    """The connection's own catalog; None for a view of another one that does not name it."""
    is_named = own is not None and len(parts) > 2 and parts[0].lower() == own.name.lower()
    return None if stored and used is not None and not is_named else own


def forget(names: SearchPath) -> None:
    """Clear all cached data and catalog state."""
    names._cache.clear()
    for each in (names._catalog, *names._others.opened):
        drop = getattr(each, "forget", None)
        if drop is not None:
            drop()
