"""Renewal: asks a catalog again for a table's credentials, in this process or in a worker's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Vendor(Protocol):
    """A catalog that vends credentials; ``name`` and ``given`` open it."""

    name: str
    given: Mapping[str, Any]

    def credentials(
        self, identifier: Sequence[str], location: str, plan_id: str | None = None
    ) -> Mapping[str, str]:
        """The storage properties of a table now, or of the files of a plan of the catalog's."""

    def token_of(self, identifier: Sequence[str]) -> str | None:
        """The token that the catalog gave for requests about a table."""

    def use_token(self, identifier: Sequence[str], token: str | None) -> None:
        """Have it sent."""


class Renewal:
    """Gives the storage properties of one table anew; pickled it opens the catalog for itself.

    So what the user shows the catalog goes to the workers that have to show it.
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
