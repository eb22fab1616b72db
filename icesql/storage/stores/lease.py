"""Lease: credentials that a catalog lends for a while, and renews while a scan goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.errors import CatalogError

# As Iceberg's Java client does: fetched five minutes before they expire.
MARGIN_SECONDS: Final = 300.0
# A store that refuses fresh credentials refuses for another reason.
_SHORTEST_SECONDS: Final = 10.0
# Endings of the property names; the account of a token may follow.
_EXPIRES: Final = ("expires-at-ms", "token-expires-at", "expiration-ms")


class Lease:
    """Storage properties with credentials that expire; safe for threads.

    ``renew`` fetches the properties from the catalog again, and may raise CatalogError. However
    many threads find them expired or refused, it is called once for them all. A pickled lease
    renews for itself, if ``renew`` pickles.
    """

    def __init__(
        self, properties: Mapping[str, str], renew: Callable[[], Mapping[str, str]]
    ) -> None:
        self._properties, self._renew = properties, renew
        self._lock = threading.Lock()
        self._tried: float | None = None
        self._problem: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._properties, self._renew)

    def current(self) -> Mapping[str, str]:
        """The properties to use now, renewed shortly before they expire.

        If the catalog returns no others, the old ones.
        """
        until = expires_at(self._properties)
        if until is None or time.time() < until - MARGIN_SECONDS:
            return self._properties
        with self._lock:
            until = expires_at(self._properties)
            if until is not None and time.time() >= until - MARGIN_SECONDS and self._may_renew():
                try:
                    self._fetch()
                except CatalogError:
                    if time.time() >= until:
                        raise
            return self._properties

    def renewed(self, refused: Mapping[str, str]) -> bool:
        """Whether there are others than ``refused``, which a store did not take.

        Raises CatalogError when the catalog gives none.
        """
        with self._lock:
            if self._properties is refused:
                if not self._may_renew():
                    if self._problem is not None:
                        raise CatalogError(self._problem)
                    return False
                self._fetch()
            return self._properties is not refused

    def _may_renew(self) -> bool:
        if self._tried is None:
            return True
        until = expires_at(self._properties)
        is_over = until is not None and time.time() >= until
        return time.monotonic() - self._tried >= (1.0 if is_over else _SHORTEST_SECONDS)

    def _fetch(self) -> None:
        self._tried, self._problem = time.monotonic(), None
        try:
            found = dict(self._renew())
        except CatalogError as error:
            self._problem = str(error)
            raise
        if found != self._properties:
            self._properties = found


def expires_at(properties: Mapping[str, Any]) -> float | None:
    """When the first of the credentials expires, in seconds since 1970; None without a time."""
    found = []
    for name, value in properties.items():
        if any(name.endswith(end) or f"{end}." in name for end in _EXPIRES):
            try:
                found.append(int(str(value)) / 1000)
            except ValueError:
                continue
    return min(found, default=None)
