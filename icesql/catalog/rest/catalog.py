"""RestCatalog: namespaces and tables of a REST catalog, loaded in one request each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from icesql.catalog.identifiers import (
    MOST_NAMES,
    all_namespaces,
    matching,
    near_tables,
    not_found,
)
from icesql.catalog.rest.answers import Answer, Refusal
from icesql.catalog.rest.auth import auth_of
from icesql.catalog.rest.client import RestClient
from icesql.catalog.rest.configured import Configured, configured
from icesql.catalog.rest.loaded import (
    LoadedTable,
    Owner,
    Vended,
    fresh_until,
    properties_of,
    table_of,
)
from icesql.catalog.rest.renewal import Renewal
from icesql.catalog.rest.reports import ScanReports, TableReports
from icesql.catalog.rest.snapshots import ReferencedFirst
from icesql.catalog.table import Identifier, Table
from icesql.errors import (
    CatalogError,
    NotSupportedError,
    TableNotFoundError,
    UnsupportedTableError,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange

_SEPARATOR: Final = "\x1f"
_DELEGATION: Final = "X-Iceberg-Access-Delegation"
_MOST_PAGES: Final = 100_000
_KEPT_BYTES: Final = 64 << 20
# A server that sets one of these is asked as it says from then on.
_OF_AUTH: Final = ("token", "credential", "scope", "oauth2-server-uri")
_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
_REPORT: Final = f"POST {_TABLE}/metrics"
_VIEW: Final = "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}"
_CREDENTIALS: Final = f"GET {_TABLE}/credentials"


class RestCatalog:
    """A catalog behind HTTP.

    ``properties`` are the user's; those that the server's configuration adds or overrides are
    fetched with the first request. Tables that did not change are not sent again (ETag).
    """

    # A call may wait for another machine.
    may_wait = True
    kind = "rest"

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
        # What came with an ETag, by identifier and mode.
        self._kept = BoundedCache(_KEPT_BYTES)
        self._reports = ScanReports(self._post_report)

    def __repr__(self) -> str:
        return f"RestCatalog({self.name!r})"

    # ------------------------------------------------------------------ configuration

    @property
    def properties(self) -> Mapping[str, Any]:
        """The server's defaults, the user's properties on them, the server's overrides on both.

        Raises CatalogError when the server does not answer.
        """
        return self._configured().properties

    def has_endpoint(self, endpoint: str) -> bool | None:
        """Whether the server says that it has "METHOD /v1/…"; None when it lists nothing."""
        return self._configured().has(endpoint)

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
        """The namespaces of the first level: one question, to see whether it answers."""
        return self._namespaces_in(())

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``."""
        if namespace is None:
            return [table for each in self.namespaces() for table in self.tables(each)]
        if not namespace:
            return []
        path = self._path("namespaces", self._joined(namespace), "tables")
        found = []
        for each in self._listed(path, "identifiers"):
            told = each if isinstance(each, dict) else {}
            found.append((*self._names(told.get("namespace")), *self._names([told.get("name")])))
        return sorted(found)

    def _names(self, parts: Any) -> tuple[str, ...]:
        if not isinstance(parts, list) or not all(isinstance(each, str) for each in parts):
            raise CatalogError(
                f"catalog {self.name}: its answer is not what a catalog sends: a name is a list "
                "of texts"
            )
        return tuple(parts)

    def _namespaces_in(self, above: Identifier) -> list[Identifier]:
        query = {"parent": self._joined(above)} if above else {}
        path = self._path("namespaces")
        try:
            return [self._names(each) for each in self._listed(path, "namespaces", query)]
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
        count = 0
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
            count += len(items)
            if not isinstance(token, str) or token in seen or count > MOST_NAMES:
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
            if self._is_view(wanted):
                raise UnsupportedTableError("views of a catalog", table=".".join(wanted)) from error
            near, hint = near_tables(self, wanted)
            found = matching(wanted, near)
            if found is None or found == wanted:
                raise not_found(wanted, near, f"catalog {self.name}", hint) from error
            return self._load(found)

    def _is_view(self, identifier: Identifier) -> bool:
        if self.has_endpoint(_VIEW) is False:
            return False
        path = self._path("namespaces", self._joined(identifier[:-1]), "views", identifier[-1])
        try:
            self._client.request("HEAD", *path)
        except Refusal:
            return False
        return True

    def _load(self, identifier: Identifier) -> Table:
        mode = str(self.properties.get("snapshot-loading-mode") or "all").lower()
        made = self._table(identifier, mode)
        if mode != "refs":
            return made
        whole = ReferencedFirst(
            made.metadata.snapshots, lambda: self._table(identifier, "all").metadata.snapshots
        )
        return replace(made, metadata=replace(made.metadata, snapshots=whole))

    def _table(self, identifier: Identifier, mode: str) -> Table:
        loaded = self._fetched(identifier, mode)
        return table_of(identifier, loaded, self._owner(identifier, loaded.location))

    def _owner(self, identifier: Identifier, location: str) -> Owner:
        return Owner(
            self.name,
            self.given,
            self.properties,
            self.cache,
            self.confine,
            partial(Renewal, self, identifier, location),
            self._reports_of(identifier),
            self,
        )

    def _fetched(self, identifier: Identifier, mode: str) -> LoadedTable:
        kept: tuple[str, LoadedTable, float] | None = self._kept.get((*identifier, mode))
        headers = self._delegating()
        if kept is not None and time.time() < kept[2]:
            headers["If-None-Match"] = kept[0]
        query = {"snapshots": mode} if mode == "refs" else None
        path = self._path_of(identifier)
        answer = self._client.request("GET", *path, query=query, headers=headers)
        if answer.status == 304 and kept is not None:
            return kept[1]
        loaded: LoadedTable = self._client.decoded(answer.body, LoadedTable)
        if tag := answer.headers.get("etag"):
            until = fresh_until(loaded)
            self._kept.put((*identifier, mode), (tag, loaded, until), len(answer.body))
        return loaded

    def credentials(
        self, identifier: Sequence[str], location: str, plan_id: str | None = None
    ) -> Mapping[str, str]:
        """The storage properties of a table at ``location``, with what the catalog vends now.

        ``plan_id`` is that of the scan whose files are read, where the catalog planned it.
        """
        wanted = tuple(identifier)
        self._kept.clear()  # a table that did not change would come with its old credentials
        if self.has_endpoint(_CREDENTIALS):
            query = None if plan_id is None else {"planId": plan_id}
            answer = self.ask("GET", wanted, "credentials", query=query)
            vended: Vended = self._client.decoded(answer.body, Vended)
            loaded = LoadedTable(msgspec.Raw(b""), storage_credentials=vended.storage_credentials)
        else:
            loaded = self._fetched(wanted, "refs")
        return properties_of(loaded, self._owner(wanted, location), location)

    def _delegating(self) -> dict[str, str]:
        delegation = self.properties.get(f"header.{_DELEGATION}")
        return {_DELEGATION: str(delegation or "vended-credentials")}

    def _path_of(self, identifier: Identifier) -> tuple[str, ...]:
        return self._path("namespaces", self._joined(identifier[:-1]), "tables", identifier[-1])

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """NotSupportedError: icesql only reads the tables of such catalogs."""
        raise NotSupportedError(f"not supported: commits to {'.'.join(identifier)} in {self.name}")

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """NotSupportedError: icesql only reads the tables of such catalogs."""
        raise NotSupportedError(f"not supported: new tables in catalog {self.name}")

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """NotSupportedError: icesql only reads the tables of such catalogs."""
        raise NotSupportedError(f"not supported: renaming tables of catalog {self.name}")

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """NotSupportedError: icesql only reads the tables of such catalogs."""
        raise NotSupportedError(f"not supported: new namespaces in catalog {self.name}")

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """NotSupportedError: icesql only reads the tables of such catalogs."""
        raise NotSupportedError(f"not supported: dropping namespaces of catalog {self.name}")

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """As ``Catalog.drop``."""
        wanted = tuple(identifier)
        path = self._path_of(wanted)
        try:
            self._client.request(
                "DELETE", *path, query={"purgeRequested": "true" if purge else "false"}
            )
        except Refusal as error:
            if error.status == 404:
                raise TableNotFoundError(".".join(wanted)) from error
            raise

    def ask(self, method: str, identifier: Identifier, *below: str, **options: Any) -> Answer:
        """The answer to a request about a table. Raises CatalogError."""
        options.setdefault("headers", self._delegating())
        return self._client.request(method, *self._path_of(identifier), *below, **options)

    def decoded(self, body: bytes, kind: Any) -> Any:
        """A body as JSON of a type. Raises CatalogError."""
        return self._client.decoded(body, kind)

    def _post_report(self, identifier: Identifier, report: Mapping[str, Any]) -> None:
        self.ask("POST", identifier, "metrics", body=report)

    def _reports_of(self, identifier: Identifier) -> TableReports | None:
        switch = str(self.properties.get("rest-metrics-reporting-enabled") or "true").lower()
        if switch == "false" or self.has_endpoint(_REPORT) is False:
            return None
        return TableReports(self._reports, identifier)

    def empty_hint(self) -> str:
        """What to know about a catalog without namespaces."""
        return f"catalog {self.name} has no tables"

    def close(self) -> None:
        """As ``Catalog.close``."""
        self._reports.close()
        self._client.close()

    def _all_tables(self) -> list[Identifier]:
        with suppress(CatalogError):
            return self.tables()
        return []
