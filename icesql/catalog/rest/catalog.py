"""RestCatalog: namespaces and tables of a REST catalog, loaded in one request each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

from msgspec.structs import replace

from icesql.catalog.identifiers import matching, near_tables, not_found
from icesql.catalog.rest.answers import Refusal
from icesql.catalog.rest.auth import auth_of
from icesql.catalog.rest.client import RestClient
from icesql.catalog.rest.loaded import LoadedTable, storage_properties, table_of
from icesql.catalog.rest.snapshots import ReferencedFirst
from icesql.catalog.table import Identifier, Table
from icesql.errors import CatalogError, NotSupportedError, TableNotFoundError
from icesql.storage.cache import BoundedCache
from icesql.storage.roots import Roots

_SEPARATOR: Final = "\x1f"
_DELEGATION: Final = "X-Iceberg-Access-Delegation"
_MOST_PAGES: Final = 100_000
# What a catalog that lists no endpoints is taken to have.
_REPORT: Final = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"


class RestCatalog:
    """A catalog behind HTTP.

    ``properties`` are the user's; those that the server's configuration adds or overrides are
    fetched with the first request. Tables that did not change are not sent again (ETag).
    """

    # A call may wait for another machine.
    may_wait = True

    def __init__(
        self,
        name: str,
        properties: Mapping[str, Any],
        cache: BoundedCache | None = None,
        confine: bool | Roots = False,
    ) -> None:
        self.name, self.cache, self.confine = name, cache, confine
        self._given = dict(properties)
        uri = str(properties["uri"]).rstrip("/")
        self._client = RestClient(name, uri, self._given, auth_of(name, uri, properties))
        self._config: dict[str, Any] | None = None
        self._endpoints: frozenset[str] | None = None
        self._kept: dict[Identifier, tuple[str, LoadedTable]] = {}

    def __repr__(self) -> str:
        return f"RestCatalog({self.name!r})"

    # ------------------------------------------------------------------ configuration

    @property
    def properties(self) -> Mapping[str, Any]:
        """The server's defaults, the user's properties on them, the server's overrides on both.

        Raises CatalogError when the server does not answer.
        """
        if self._config is None:
            warehouse = self._given.get("warehouse")
            query = {"warehouse": str(warehouse)} if warehouse else None
            found = self._client.json("GET", "v1", "config", query=query)
            if not isinstance(found, dict):
                raise CatalogError(
                    f"catalog {self.name}: its configuration is not what a catalog sends"
                )
            merged = {
                **_texts(found.get("defaults")),
                **self._given,
                **_texts(found.get("overrides")),
            }
            listed = found.get("endpoints")
            self._endpoints = frozenset(map(str, listed)) if isinstance(listed, list) else None
            uri = str(merged["uri"]).rstrip("/")
            if uri != self._client.uri or any(
                merged.get(key) != self._given.get(key) for key in ("token", "credential")
            ):
                self._client.close()
                self._client = RestClient(self.name, uri, merged, auth_of(self.name, uri, merged))
            else:
                self._client.properties = merged
            self._config = merged
        return self._config

    def has_endpoint(self, endpoint: str) -> bool | None:
        """Whether the server says that it has "METHOD /v1/…"; None when it lists nothing."""
        _ = self.properties
        return None if self._endpoints is None else endpoint in self._endpoints

    def _path(self, *parts: str) -> tuple[str, ...]:
        prefix = str(self.properties.get("prefix") or "").strip("/")
        return ("v1", *(filter(None, prefix.split("/"))), *parts)

    def _joined(self, namespace: Sequence[str]) -> str:
        separator = unquote(str(self.properties.get("namespace-separator") or _SEPARATOR))
        return separator.join(namespace)

    # ------------------------------------------------------------------ names

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``."""
        found: list[Identifier] = []
        waiting: list[Identifier] = [()]
        while waiting:
            above = waiting.pop()
            for namespace in self._namespaces_in(above):
                if namespace not in found and namespace != above:
                    found.append(namespace)
                    waiting.append(namespace)
        return sorted(found)

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``."""
        if namespace is None:
            return [table for each in self.namespaces() for table in self.tables(each)]
        if not namespace:
            return []
        path = self._path("namespaces", self._joined(namespace), "tables")
        return sorted(
            (*_names(each.get("namespace")), str(each.get("name")))
            for each in self._listed(path, "identifiers")
            if isinstance(each, dict)
        )

    def _namespaces_in(self, above: Identifier) -> list[Identifier]:
        query = {"parent": self._joined(above)} if above else {}
        path = self._path("namespaces")
        try:
            return [tuple(map(str, each)) for each in self._listed(path, "namespaces", query)]
        except Refusal:
            if above:  # some catalogs have one level and say so by refusing
                return []
            raise

    def _listed(
        self, path: tuple[str, ...], key: str, query: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """The items of a list that comes in pages."""
        asked = dict(query or {})
        if size := self.properties.get("rest-page-size"):
            asked |= {"pageSize": str(size), "pageToken": ""}
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            page = self._client.json("GET", *path, query=asked or None)
            items = page.get(key) if isinstance(page, dict) else None
            if not isinstance(items, list):
                raise CatalogError(
                    f"catalog {self.name}: its answer is not what a catalog sends: no {key}"
                )
            yield from items
            token = page.get("next-page-token")
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
            asked["pageToken"] = token
        raise CatalogError(f"catalog {self.name}: its list of {key} does not end")

    # ------------------------------------------------------------------ tables

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; the metadata is the one that the catalog sends along.

        The storage has the credentials that the catalog vended for the table.
        """
        wanted = tuple(identifier)
        if len(wanted) < 2:
            raise not_found(wanted, self._all_tables(), f"catalog {self.name}")
        try:
            return self._load(wanted)
        except Refusal as error:
            if error.status != 404:
                raise
            near, hint = near_tables(self, wanted)
            found = matching(wanted, near)
            if found is None or found == wanted:
                raise not_found(wanted, near, f"catalog {self.name}", hint) from error
            return self._load(found)

    def _load(self, identifier: Identifier) -> Table:
        table = self._fetched(identifier)
        mode = str(self.properties.get("snapshot-loading-mode") or "all").lower()
        made = table_of(identifier, table, self.properties, self.cache, self.confine)
        if mode != "refs":
            return made
        whole = ReferencedFirst(
            made.metadata.snapshots,
            lambda: (
                table_of(
                    identifier,
                    self._fetched(identifier, snapshots="all"),
                    self.properties,
                    self.cache,
                    self.confine,
                ).metadata.snapshots
            ),
        )
        return replace(made, metadata=replace(made.metadata, snapshots=whole))

    def _fetched(self, identifier: Identifier, snapshots: str | None = None) -> LoadedTable:
        mode = snapshots or str(self.properties.get("snapshot-loading-mode") or "all").lower()
        path = self._path("namespaces", self._joined(identifier[:-1]), "tables", identifier[-1])
        delegation = self.properties.get(f"header.{_DELEGATION}")
        headers = {_DELEGATION: str(delegation or "vended-credentials")}
        kept = self._kept.get((*identifier, mode))
        if kept is not None:
            headers["If-None-Match"] = kept[0]
        query = {"snapshots": mode} if mode == "refs" else None
        answer = self._client.request("GET", *path, query=query, headers=headers)
        if answer.status == 304 and kept is not None:
            return kept[1]
        loaded: LoadedTable = self._client.decoded(answer.body, LoadedTable)
        if tag := answer.headers.get("etag"):
            self._kept[(*identifier, mode)] = tag, loaded
        return loaded

    def credentials(self, identifier: Sequence[str]) -> Mapping[str, str]:
        """The storage properties of a table with credentials that the catalog vends now."""
        wanted = tuple(identifier)
        for mode in ("all", "refs"):
            self._kept.pop((*wanted, mode), None)
        return storage_properties(self._fetched(wanted), self.properties)

    def commit(self, identifier: Sequence[str], *, expected: str | None, new: str) -> str:
        """NotSupportedError: such catalogs take updates and requirements, not metadata files."""
        raise NotSupportedError(f"not supported: commits to {'.'.join(identifier)} in {self.name}")

    def drop(self, identifier: Sequence[str]) -> None:
        """As ``Catalog.drop``."""
        wanted = tuple(identifier)
        path = self._path("namespaces", self._joined(wanted[:-1]), "tables", wanted[-1])
        try:
            self._client.request("DELETE", *path, query={"purgeRequested": "false"})
        except Refusal as error:
            if error.status == 404:
                raise TableNotFoundError(".".join(wanted)) from error
            raise

    def report(self, identifier: Sequence[str], report: Mapping[str, Any]) -> None:
        """Send a scan report, where the catalog takes such; nothing is raised."""
        with suppress(CatalogError):
            if self.has_endpoint(_REPORT) is not False:
                wanted = tuple(identifier)
                path = ("namespaces", self._joined(wanted[:-1]), "tables", wanted[-1], "metrics")
                self._client.request("POST", *self._path(*path), body=report)

    def empty_hint(self) -> str:
        """What to know about a catalog without namespaces."""
        return f"catalog {self.name} has no tables"

    def close(self) -> None:
        """As ``Catalog.close``."""
        self._client.close()

    def _all_tables(self) -> list[Identifier]:
        with suppress(CatalogError):
            return self.tables()
        return []


def _texts(values: Any) -> dict[str, str]:
    """Properties of a configuration; what is no text is spelled as one."""
    if not isinstance(values, dict):
        return {}
    return {str(key): str(value) for key, value in values.items() if value is not None}


def _names(parts: Any) -> tuple[str, ...]:
    return tuple(map(str, parts)) if isinstance(parts, list) else ()
