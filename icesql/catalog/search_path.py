"""Which table a name means in one session: registered tables, then the catalogs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icesql.access import Access
from icesql.config import Settings
from icesql.errors import (
    CatalogError,
    InterfaceError,
    ProgrammingError,
    TableNotFoundError,
    similar_names,
)

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.context import QueryContext
    from icesql.storage.cache import BoundedCache


class SearchPath:
    """The names of one session, in the order in which they are looked up.

    First the registered tables, then the current namespace and the whole catalog of the connection,
    then the other catalogs of the user's PyIceberg configuration. Catalogs are opened when first
    asked for; ``access`` says which names and paths SQL may use.
    """

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        cache: BoundedCache,
        access: Access,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.access = access
        # Of the connection: with these its tables by path are opened, too.
        self._given = dict(properties or {})
        self.namespace: tuple[str, ...] = ()
        # What the settings of the session began with.
        self.defaults = Settings()
        self._open_catalog, self._opened = open_catalog, False
        self._catalog: Catalog | None = None
        self._closed = False
        self._other_catalogs: dict[str, Catalog] = {}
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
            # A query that was given up may come late, when it is open or closed again.
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

    def register(self, name: str, path: str | os.PathLike[str]) -> None:
        """Let ``name`` mean the table at ``path``, before any catalog's table."""
        self._registered[name] = os.fspath(path)

    def open_table(self, parts: Sequence[str], path: str | None = None) -> Table:
        """The table of a name, or of a path, freshly loaded.

        Raises TableNotFoundError with the nearest names, AccessDeniedError, CatalogError.
        """
        table = self._table(tuple(parts), path)
        if table.storage.properties:
            # Vended credentials may be another table's tomorrow: the last of each name are kept.
            self._properties[table.name] = table.storage.properties
        return table

    def load(self, parts: Sequence[str], path: str | None, query: QueryContext) -> Table:
        """As ``open_table``; what may wait for another machine is left when ``query`` ends."""
        if self.is_near(parts, path):
            return self.open_table(parts, path)
        return query.wait_for(lambda: self.open_table(parts, path))

    def is_near(self, parts: Sequence[str], path: str | None = None) -> bool:
        """Whether opening the table reads only files of this machine."""
        from icesql.storage.reroot import is_local

        place = path or self._registered_path(parts)
        if place is not None:
            return is_local(place)
        return self._opened and not getattr(self._catalog, "may_wait", True)

    def table_names(self) -> list[str]:
        """Every name that a query may use: registered tables and those of the catalog."""
        catalog = self.catalog
        listed = catalog.tables(None) if catalog is not None else []
        return [*self._registered, *(".".join(identifier) for identifier in listed)]

    def find_namespace(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The namespace of a name, to become ``namespace``. Raises ProgrammingError."""
        catalog = self.catalog
        if catalog is None:
            raise ProgrammingError("USE needs a catalog; connect with one")
        known = catalog.namespaces()
        by_lower = {tuple(part.lower() for part in each): each for each in known}
        found = by_lower.get(tuple(part.lower() for part in parts))
        if found is None and parts and parts[0].lower() == catalog.name.lower():
            parts = parts[1:]
            found = by_lower.get(tuple(part.lower() for part in parts))
        if parts and found is None:
            name = ".".join(parts)
            near = similar_names(name, (".".join(each) for each in known))
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ProgrammingError(f'namespace "{name}" not found{hint}')
        return found or ()

    def close(self) -> None:
        """Close the catalogs; none is opened again. Whoever opens one is not waited for."""
        self._closed = True
        for catalog in (self._catalog, *self._other_catalogs.values()):
            if catalog is not None:
                catalog.close()
        with self._lock:
            self._catalog, self._opened = None, True

    def _table(self, parts: tuple[str, ...], path: str | None) -> Table:
        from icesql.catalog.open import denied_path, open_table

        confine = self.access.confine
        if path is not None:
            allowed = self.access.tables_by_path
            if allowed is False:
                raise denied_path()
            return open_table(
                path,
                name=parts[-1],
                properties=self._given,
                cache=self._cache,
                within=None if allowed is True else allowed,
                confine=confine,
            )
        registered = self._registered_path(parts)
        if registered is not None:
            return open_table(
                registered,
                name=parts[-1],
                properties=self._given,
                cache=self._cache,
                confine=confine,
            )
        return self._catalog_table(parts)

    def _registered_path(self, parts: Sequence[str]) -> str | None:
        if len(parts) != 1:
            return None
        if parts[0] in self._registered:
            return self._registered[parts[0]]
        lower = {name.lower(): path for name, path in self._registered.items()}
        return lower.get(parts[0].lower())

    def _catalog_table(self, parts: tuple[str, ...]) -> Table:
        catalog = self.catalog
        name = ".".join(parts)
        if catalog is None:
            other = self._catalog_named(parts[0]) if len(parts) > 2 else None
            if other is not None:
                return other.load(parts[1:])
            raise TableNotFoundError(
                name,
                similar=similar_names(name, self._registered),
                hint="connect with a catalog or a warehouse, register_table(name, path), "
                "or read a path with iceberg_scan('path')",
            )
        candidates = [parts]
        if self.namespace:
            candidates.insert(0, (*self.namespace, *parts))
        if len(parts) > 1 and parts[0].lower() == catalog.name.lower():
            candidates.append(parts[1:])
        missing: dict[tuple[str, ...], TableNotFoundError] = {}
        for candidate in candidates:
            try:
                return catalog.load(candidate)
            except TableNotFoundError as error:
                missing[candidate] = error
        if len(parts) > 2 and (other := self._catalog_named(parts[0])) is not None:
            return other.load(parts[1:])
        # Two names are most likely the namespace and the table, wherever USE has led.
        raise missing[parts if len(parts) > 1 else candidates[0]]

    def _catalog_named(self, name: str) -> Catalog | None:
        """Another catalog of the user's PyIceberg configuration, None without such a name."""
        from icesql.catalog.open import open_catalog

        if not self.access.allows_catalog(name):
            return None  # as if there were none of that name
        if name not in self._other_catalogs:
            try:
                self._other_catalogs[name] = open_catalog(
                    name, cache=self._cache, confine=self.access.confine
                )
            except CatalogError:
                return None
        return self._other_catalogs[name]
