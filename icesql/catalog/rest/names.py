"""The names in a REST catalog: its server's configuration, and paged lists of its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from icesql.catalog.identifiers import MOST_NAMES, Identifier, all_namespaces
from icesql.catalog.properties import names_code
from icesql.catalog.rest.answers import Answer, Refusal
from icesql.catalog.rest.auth import auth_of
from icesql.catalog.rest.client import RestClient
from icesql.catalog.rest.origins import check_addresses
from icesql.catalog.rest.views import list_views, load_view
from icesql.catalog.view import StoredView
from icesql.errors import CatalogError
from icesql.storage.credentials import redact

_SEPARATOR: Final = "\x1f"
_MOST_PAGES: Final = 100_000
# If the server's configuration sets one of these, a new client with it is created.
_OF_AUTH: Final = ("token", "credential", "scope", "oauth2-server-uri")


class RestNames:
    """The part of a REST catalog that fetches its configuration and lists its contents.

    ``given`` are the user's properties; the first request fetches those that the server's
    configuration adds or overrides.
    """

    def __init__(self, name: str, properties: Mapping[str, Any]) -> None:
        self.name = name
        self.given: Mapping[str, Any] = dict(properties)
        uri = str(properties["uri"]).rstrip("/")
        self._client = RestClient(name, uri, self.given, auth_of(name, uri, properties))
        self._config: Configured | None = None

    # ------------------------------------------------------------------ configuration

    @property
    def properties(self) -> Mapping[str, Any]:
        """The server's defaults, updated with the user's properties, then the server's overrides.

        Raises CatalogError if the server does not respond.
        """
        return self._configured().properties

    def has_endpoint(self, endpoint: str) -> bool | None:
        """True if the server lists the endpoint "METHOD /v1/…"; None if it lists none at all."""
        return self._configured().has(endpoint)

    @property
    def client(self) -> RestClient:
        """The client, set up by the server's configuration. Raises CatalogError."""
        self._configured()
        return self._client

    @property
    def is_idempotent(self) -> bool:
        """True if the server applies a repeated request with the same idempotency key only once."""
        return self._configured().is_idempotent

    def send(self, method: str, *path: str, **options: Any) -> Answer:
        """Send a request to a path below the catalog's prefix. Raises CatalogError."""
        return self.client.request(method, *self._path(*path), **options)

    def joined(self, namespace: Sequence[str]) -> str:
        """A namespace as one segment of a URL path."""
        return self._joined(namespace)

    def _configured(self) -> Configured:
        if self._config is None:
            warehouse = self.given.get("warehouse")
            query = {"warehouse": str(warehouse)} if warehouse else None
            try:
                answer = self._client.json("GET", "v1", "config", query=query)
            except Refusal as error:
                if error.status != 404:
                    raise
                place = redact(self._client.uri, self.given)
                raise CatalogError(
                    f"{error}; is {place} the address of an Iceberg REST catalog?"
                ) from None
            config = configured(self.name, self.given, answer)
            merged = config.properties
            uri = str(merged["uri"]).rstrip("/")
            if uri != self._client.uri or any(
                merged.get(key) != self.given.get(key) for key in _OF_AUTH
            ):
                self._client.close()
                self._client = RestClient(self.name, uri, merged, auth_of(self.name, uri, merged))
            else:
                self._client.properties = merged
            self._config = config
        return self._config

    def _path(self, *parts: str) -> tuple[str, ...]:
        prefix = str(self.properties.get("prefix") or "").strip("/")
        return ("v1", *(filter(None, prefix.split("/"))), *parts)

    def _joined(self, namespace: Sequence[str]) -> str:
        separator = unquote(str(self.properties.get("namespace-separator") or _SEPARATOR))
        return separator.join(namespace)

    # ------------------------------------------------------------------ names

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``."""
        return all_namespaces(self._namespaces_in, f"catalog {self.name}")

    def first_namespaces(self) -> list[Identifier]:
        """The namespaces of the first level: one request, to check that the catalog responds."""
        return self._namespaces_in(())

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``."""
        if namespace is None:
            return [table for each in self.namespaces() for table in self.tables(each)]
        return sorted(self.listed_names("tables", namespace)) if namespace else []

    def listed_names(self, kind: str, namespace: Sequence[str]) -> Iterator[Identifier]:
        """The identifiers of the "tables" or "views" directly in a namespace."""
        path = self._path("namespaces", self._joined(namespace), kind)
        for each in self._listed(path, "identifiers"):
            named = each if isinstance(each, dict) else {}
            yield (*self._names(named.get("namespace")), *self._names([named.get("name")]))

    def views(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``HasViews.views``."""
        spaces = self.namespaces() if namespace is None else [tuple(namespace)]
        return [view for each in spaces for view in list_views(self, each)]

    def load_view(self, identifier: Sequence[str]) -> StoredView | None:
        """As ``HasViews.load_view``."""
        return load_view(self, identifier)

    def request_of(self, kind: str, identifier: Identifier) -> Any:
        """The response for one of the "tables" or "views"."""
        path = self._path("namespaces", self._joined(identifier[:-1]), kind, identifier[-1])
        return self._client.request("GET", *path)

    def decoded(self, body: bytes, kind: type[Any]) -> Any:
        """As ``RestClient.decoded``."""
        return self._client.decoded(body, kind)

    def _names(self, parts: Any) -> tuple[str, ...]:
        if not isinstance(parts, list) or not all(isinstance(each, str) for each in parts):
            raise CatalogError(
                f"catalog {self.name}: invalid response: expected a name as a list of strings"
            )
        return tuple(parts)

    def _namespaces_in(self, above: Identifier) -> list[Identifier]:
        query = {"parent": self._joined(above)} if above else {}
        path = self._path("namespaces")
        try:
            return [self._names(each) for each in self._listed(path, "namespaces", query)]
        except Refusal:
            if above:  # catalogs with one level reject requests for nested namespaces
                return []
            raise

    def _listed(
        self, path: tuple[str, ...], key: str, query: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """The items of a paged list."""
        parameters = dict(query or {})
        if size := self.properties.get("rest-page-size"):
            parameters |= {"pageSize": str(size), "pageToken": ""}
        seen: set[str] = set()
        count = 0
        for _ in range(_MOST_PAGES):
            page = self._client.json("GET", *path, query=parameters or None)
            items = page.get(key) if isinstance(page, dict) else None
            if not isinstance(items, list):
                raise CatalogError(
                    f"catalog {self.name}: invalid response: expected a list of {key}"
                )
            yield from items
            token = page.get("next-page-token")
            if not token:
                return
            count += len(items)
            if not isinstance(token, str) or token in seen or count > MOST_NAMES:
                break
            seen.add(token)
            parameters["pageToken"] = token
        raise CatalogError(f"catalog {self.name}: its list of {key} does not end")


# The configuration of a REST catalog: the server's response merged with the user's properties.

# A server must not choose how this machine authenticates.
_OWN: Final = frozenset(
    {"auth", "ssl", "ssl.cabundle", "client.profile-name", "s3.profile-name", "type"}
)


class Configured(Struct, frozen=True):
    """The effective properties and the endpoints that the server lists; None if it lists none.

    ``is_idempotent``: a repeated request with the same idempotency key is applied only once.
    """

    properties: Mapping[str, Any]
    endpoints: frozenset[str] | None = None
    is_idempotent: bool = False

    def has(self, endpoint: str) -> bool | None:
        """True if the server lists the endpoint "METHOD /v1/…"; None if it lists none at all."""
        return None if self.endpoints is None else endpoint in self.endpoints


def configured(name: str, given: Mapping[str, Any], answer: Any) -> Configured:
    """The server's defaults, updated with the user's properties, then the server's overrides.

    Raises CatalogError for a malformed response, and for one that would send the user's credentials
    to another server.
    """
    if not isinstance(answer, dict):
        raise CatalogError(f"catalog {name}: invalid response: expected an object of configuration")
    merged = {**_texts(answer.get("defaults")), **given, **_texts(answer.get("overrides"))}
    check_addresses(name, given, merged)
    listed = answer.get("endpoints")
    endpoints = frozenset(map(str, listed)) if isinstance(listed, list) and listed else None
    return Configured(merged, endpoints, bool(answer.get("idempotency-key-lifetime")))


def _texts(values: Any) -> dict[str, str]:
    """Properties of a configuration, converted to strings."""
    if not isinstance(values, dict):
        return {}
    return {
        str(key): str(value)
        for key, value in values.items()
        if value is not None and key not in _OWN and not names_code(str(key))
    }
