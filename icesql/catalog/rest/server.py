"""The server of a REST catalog: its configuration, requests, and paged lists of its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from icesql.catalog.configuration import names_code
from icesql.catalog.identifiers import MOST_NAMES, ByNamespace
from icesql.catalog.rest.answers import Answer, Refusal
from icesql.catalog.rest.auth import auth_of, check_addresses
from icesql.catalog.rest.client import RestClient
from icesql.catalog.table import Identifier
from icesql.errors import CatalogError
from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact
from icesql.storage.roots import Roots

_SEPARATOR: Final = "\x1f"
_NAMESPACES: Final = "GET /v1/{prefix}/namespaces"
_MOST_PAGES: Final = 100_000
_MOST_TOKENS: Final = 1_000
_DELEGATION: Final = "X-Iceberg-Access-Delegation"
_KEPT_BYTES: Final = 64 << 20
# If the server's configuration sets one of these, a new client with it is created.
_OF_AUTH: Final = ("token", "credential", "scope", "oauth2-server-uri")


class _Named(Struct):
    namespace: tuple[str, ...]
    name: str


class _Page(Struct, rename="kebab"):
    """A part of a list, of one of the two kinds."""

    namespaces: list[tuple[str, ...]] | None = None
    identifiers: list[_Named] | None = None
    next_page_token: Any = None


class RestServer(ByNamespace):
    """The part of a REST catalog that sends its requests and lists its contents.

    ``given`` are the user's properties; the first request fetches those that the server's
    configuration adds or overrides. ``cache`` and ``confine`` are for its tables.
    """

    def __init__(
        self,
        name: str,
        properties: Mapping[str, Any],
        cache: BoundedCache | None = None,
        confine: bool | Roots = False,
    ) -> None:
        self.name, self.cache, self.confine = name, cache, confine
        self.given: Mapping[str, Any] = dict(properties)
        uri = str(properties["uri"]).rstrip("/")
        self._client = RestClient(name, uri, self.given, auth_of(name, uri, properties))
        self._config: Configured | None = None
        # Table responses with an ETag, by identifier and snapshot loading mode.
        self._kept = BoundedCache(_KEPT_BYTES)
        # Tokens that the server issued for further requests about a table.
        self._tokens = BoundedCache(_MOST_TOKENS)

    # ------------------------------------------------------------------ configuration

    @property
    def properties(self) -> Mapping[str, Any]:
        """The server's defaults, updated with the user's properties, then the server's overrides.

        Raises CatalogError if the server does not respond.
        """
        return self.configured().properties

    def has_endpoint(self, endpoint: str) -> bool | None:
        """True if the server lists the endpoint "METHOD /v1/…"; None if it lists none at all."""
        listed = self.configured().endpoints
        return None if listed is None else endpoint in listed

    @property
    def client(self) -> RestClient:
        """The client, set up by the server's configuration. Raises CatalogError."""
        self.configured()
        return self._client

    def send(
        self, endpoint: str, identifier: Sequence[str] = (), *more: str, **options: Any
    ) -> Answer:
        """Send the request of an endpoint, whose ``path`` has the names. Raises CatalogError."""
        method = endpoint.partition(" ")[0]
        return self.client.request(method, *self.path(endpoint, identifier, *more), **options)

    def request(
        self, endpoint: str, identifier: Sequence[str], *more: str, **options: Any
    ) -> Answer:
        """Send a request about a table, with the token that the server issued for it."""
        options = {"headers": self.delegating(), "token": self.token_of(identifier), **options}
        return self.send(endpoint, identifier, *more, **options)

    def path(self, endpoint: str, identifier: Sequence[str], *more: str) -> tuple[str, ...]:
        """The path of "METHOD /v1/{prefix}/…" with names in the place of those in braces.

        They are the namespace of ``identifier``, its last name, and ``more``, in this order. Of the
        path of a namespace, the last name is not used.
        """
        prefix = str(self.properties.get("prefix") or "").strip("/")
        names = iter((self.joined(identifier[:-1]), *identifier[-1:], *more))
        parts = endpoint.partition("{prefix}/")[2].split("/")
        filled = (next(names) if each.startswith("{") else each for each in parts)
        return ("v1", *filter(None, prefix.split("/")), *filled)

    def joined(self, namespace: Sequence[str]) -> str:
        """A namespace as one segment of a URL path."""
        separator = unquote(str(self.properties.get("namespace-separator") or _SEPARATOR))
        return separator.join(namespace)

    def delegating(self) -> dict[str, str]:
        """The headers that request credentials for the files of a table."""
        delegation = self.properties.get(f"header.{_DELEGATION}")
        return {_DELEGATION: str(delegation or "vended-credentials")}

    def token_of(self, identifier: Sequence[str]) -> str | None:
        """The token that the server issued for further requests about a table."""
        token: str | None = self._tokens.get(tuple(identifier))
        return token

    def use_token(self, identifier: Sequence[str], token: str | None) -> None:
        """Send this token with further requests about a table; None for the catalog's own."""
        if token is None:
            self._tokens.remove(tuple(identifier))
        else:
            self._tokens.put(tuple(identifier), token, 1)

    def forget(self) -> None:
        """Clear the cached responses."""
        self._kept.clear()

    def configured(self) -> Configured:
        """The configuration, fetched once. Raises CatalogError."""
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

    # ------------------------------------------------------------------ names

    def tables_in(self, namespace: Identifier) -> list[Identifier]:
        """The tables directly in a namespace, sorted."""
        return sorted(self.listed_names("tables", namespace))

    def listed_names(self, kind: str, namespace: Sequence[str]) -> Iterator[Identifier]:
        """The identifiers of the "tables" or "views" directly in a namespace."""
        endpoint = f"{_NAMESPACES}/{{namespace}}/{kind}"
        for each in self._listed("identifiers", endpoint, (*namespace, "")):
            yield (*each.namespace, each.name)

    def namespaces_in(self, above: Identifier) -> list[Identifier]:
        """The namespaces directly in one, or for () those of the first level: one request."""
        query = {"parent": self.joined(above)} if above else {}
        try:
            return [*self._listed("namespaces", _NAMESPACES, (), **query)]
        except Refusal:
            if above:  # catalogs with one level reject requests for nested namespaces
                return []
            raise

    def _listed(
        self, key: str, endpoint: str, identifier: Identifier, **parameters: str
    ) -> Iterator[Any]:
        """The items of a paged list, which the responses have as ``key``."""
        if size := self.properties.get("rest-page-size"):
            parameters |= {"pageSize": str(size), "pageToken": ""}
        path = self.path(endpoint, identifier)
        seen: set[str] = set()
        count = 0
        for _ in range(_MOST_PAGES):
            page = self.client.json("GET", *path, kind=_Page, query=parameters or None)
            items = getattr(page, key)
            if items is None:
                raise CatalogError(
                    f"catalog {self.name}: invalid response: expected a list of {key}"
                )
            yield from items
            token = page.next_page_token
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


class Configured(Frozen):
    """The effective properties and the endpoints that the server lists; None if it lists none.

    ``is_idempotent``: a repeated request with the same idempotency key is applied only once.
    """

    properties: Mapping[str, Any]
    endpoints: frozenset[str] | None = None
    is_idempotent: bool = False


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
