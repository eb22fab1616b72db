"""Renewal: fetches new credentials of a table from its catalog, here or in a worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Vendor(Protocol):
    """A catalog that vends credentials; a worker opens it with ``name`` and ``given``."""

    name: str
    given: Mapping[str, Any]

    def credentials(
        self, identifier: Sequence[str], location: str, plan_id: str | None = None
    ) -> Mapping[str, str]:
        """New storage properties of a table, or of the files of a plan by the catalog."""

    def token_of(self, identifier: Sequence[str]) -> str | None:
        """The token that the catalog issued for requests about a table."""

    def use_token(self, identifier: Sequence[str], token: str | None) -> None:
        """Send this token with requests about a table; None for the catalog's own."""


class Renewal:
    """Fetches new storage properties of one table; after unpickling it opens the catalog itself.

    Its pickle therefore contains the user's credentials for the catalog.
    """

    def __init__(
        self,
        catalog: Vendor,
        identifier: tuple[str, ...],
        location: str,
        plan_id: str | None = None,
    ) -> None:
        self._catalog: Vendor | None = catalog
        self._kind: Any = type(catalog)
        self._name, self._given = catalog.name, catalog.given
        self._identifier, self._location, self._plan_id = identifier, location, plan_id
        self._token: str | None = None

    def __repr__(self) -> str:
        return f"Renewal({self._name!r}, {self._identifier!r})"

    def __getstate__(self) -> dict[str, Any]:
        token = self._token
        if self._catalog is not None:
            token = self._catalog.token_of(self._identifier)
        return {**self.__dict__, "_catalog": None, "_token": token}

    def __call__(self) -> Mapping[str, str]:
        """The properties. Raises CatalogError."""
        catalog = self._catalog
        if catalog is None:
            catalog = self._catalog = self._kind(self._name, self._given)
            catalog.use_token(self._identifier, self._token)
        return catalog.credentials(self._identifier, self._location, self._plan_id)
