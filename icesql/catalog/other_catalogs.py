"""The catalogs of the user's configuration that a session can use besides its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icesql.errors import CatalogError

if TYPE_CHECKING:
    from icesql.access import Access
    from icesql.catalog.table import Catalog
    from icesql.storage.cache import BoundedCache


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
        from icesql.catalog.configuration import configuration

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
