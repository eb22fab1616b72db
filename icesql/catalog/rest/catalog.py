"""RestCatalog: namespaces and tables of a REST catalog, loaded in one request each."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from icesql.catalog.identifiers import (
    matching,
    near_tables,
    not_found,
)
from icesql.catalog.rest.answers import Answer, Refusal, check_unrestricted
from icesql.catalog.rest.loaded import (
    LoadedTable,
    Owner,
    ReferencedFirst,
    Vended,
    fresh_until,
    properties_of,
    table_of,
)
from icesql.catalog.rest.names import RestNames
from icesql.catalog.rest.renewal import Renewal
from icesql.catalog.rest.reports import ScanReports, TableReports
from icesql.catalog.table import Identifier, Table
from icesql.errors import (
    CatalogError,
    TableNotFoundError,
    UnsupportedTableError,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange

_DELEGATION: Final = "X-Iceberg-Access-Delegation"
_KEPT_BYTES: Final = 64 << 20
_MOST_TOKENS: Final = 1_000
_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
_REPORT: Final = f"POST {_TABLE}/metrics"
_VIEW: Final = "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}"
_CREDENTIALS: Final = f"GET {_TABLE}/credentials"


class RestCatalog(RestNames):
    """An Iceberg REST catalog.

    ``properties`` are the user's; the first request fetches those that the server's configuration
    adds or overrides. Unchanged tables are not sent again (ETag).
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
        super().__init__(name, properties)
        self.cache, self.confine = cache, confine
        # Table responses with an ETag, by identifier and snapshot loading mode.
        self._kept = BoundedCache(_KEPT_BYTES)
        # Tokens that the server issued for further requests about a table.
        self._tokens: OrderedDict[Identifier, str] = OrderedDict()
        self._reports = ScanReports(self._post_report)

    def __repr__(self) -> str:
        return f"RestCatalog({self.name!r})"

    # ------------------------------------------------------------------ tables

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; the metadata is the JSON in the catalog's response.

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

    def load_without_waiting(self, identifier: Sequence[str]) -> Table | None:
        """As ``Catalog.load_without_waiting``: always None, every load sends a request."""
        return None

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
            self._path_of(identifier),
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
            self.use_token(identifier, kept[1].token)
            return kept[1]
        check_unrestricted(answer.body, ".".join(identifier))
        loaded: LoadedTable = self._client.decoded(answer.body, LoadedTable)
        self.use_token(identifier, loaded.token)
        if tag := answer.headers.get("etag"):
            until = fresh_until(loaded)
            self._kept.put((*identifier, mode), (tag, loaded, until), len(answer.body))
        return loaded

    def token_of(self, identifier: Sequence[str]) -> str | None:
        """The token that the server issued for further requests about a table."""
        return self._tokens.get(tuple(identifier))

    def use_token(self, identifier: Sequence[str], token: str | None) -> None:
        """Send this token with further requests about a table; None for the catalog's own."""
        self._tokens.pop(tuple(identifier), None)
        if token is not None:
            self._tokens[tuple(identifier)] = token
            while len(self._tokens) > _MOST_TOKENS:
                with suppress(KeyError):  # another thread may have emptied it
                    self._tokens.popitem(last=False)

    def credentials(
        self, identifier: Sequence[str], location: str, plan_id: str | None = None
    ) -> Mapping[str, str]:
        """The storage properties of a table at ``location``, with newly vended credentials.

        ``plan_id`` identifies the scan whose files are read, if the catalog planned it.
        """
        wanted = tuple(identifier)
        self._kept.clear()  # a cached response would have the old credentials
        if self.has_endpoint(_CREDENTIALS):
            query = None if plan_id is None else {"planId": plan_id}
            answer = self.request("GET", wanted, "credentials", query=query)
            vended: Vended = self._client.decoded(answer.body, Vended)
            loaded = LoadedTable(msgspec.Raw(b""), storage_credentials=vended.storage_credentials)
        else:
            loaded = self._fetched(wanted, "refs")
        return properties_of(loaded, self._owner(wanted, location), location)

    def forget(self) -> None:
        """Clear the cached responses."""
        self._kept.clear()

    def _delegating(self) -> dict[str, str]:
        delegation = self.properties.get(f"header.{_DELEGATION}")
        return {_DELEGATION: str(delegation or "vended-credentials")}

    def _path_of(self, identifier: Identifier) -> tuple[str, ...]:
        return self._path("namespaces", self._joined(identifier[:-1]), "tables", identifier[-1])

    # ------------------------------------------------------------------ changes

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``: sends requirements and updates, which the server applies."""
        from icesql.catalog.rest import changes

        self._kept.clear()
        return changes.swap(self, tuple(identifier), base_location is None, change)

    def register(self, identifier: Sequence[str], location: str) -> Swap:
        """As ``Registering.register``: the server reads the file."""
        from icesql.catalog.rest import changes

        self._kept.clear()
        return changes.register(self, tuple(identifier), location)

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """As ``Catalog.place_new``: the server's location, with the credentials that it vends."""
        from icesql.catalog.rest.changes import CREATE, create_request, refuse_missing
        from icesql.catalog.writes.change import Place

        wanted = tuple(identifier)
        refuse_missing(self, CREATE, f"new tables in catalog {self.name}")
        path = "namespaces", self.joined(wanted[:-1]), "tables"
        body = create_request(wanted[-1], change, staged=True)
        try:
            answer = self.send("POST", *path, body=body, headers=self._delegating())
        except Refusal as error:
            if error.status == 409:
                name = ".".join(wanted)
                raise CatalogError(f"{name} already exists") from error
            raise
        loaded: LoadedTable = self._client.decoded(answer.body, LoadedTable)
        made = table_of(wanted, loaded, self._owner(wanted, loaded.location))
        return Place(made.metadata.location, made.storage)

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """As ``Catalog.rename``."""
        from icesql.catalog.rest import changes

        changes.rename(self, identifier, new)

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.create_namespace``."""
        from icesql.catalog.rest import changes

        changes.create_namespace(self, namespace)

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.drop_namespace``."""
        from icesql.catalog.rest import changes

        changes.drop_namespace(self, namespace)

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

    def request(self, method: str, identifier: Identifier, *below: str, **options: Any) -> Answer:
        """Send a request about a table and return the response. Raises CatalogError."""
        options.setdefault("headers", self._delegating())
        options.setdefault("token", self.token_of(identifier))
        return self._client.request(method, *self._path_of(identifier), *below, **options)

    def _post_report(self, identifier: Identifier, report: Mapping[str, Any]) -> None:
        self.request("POST", identifier, "metrics", body=report)

    def _reports_of(self, identifier: Identifier) -> TableReports | None:
        switch = str(self.properties.get("rest-metrics-reporting-enabled") or "true").lower()
        if switch == "false" or self.has_endpoint(_REPORT) is False:
            return None
        return TableReports(self._reports, identifier)

    def empty_hint(self) -> str:
        """A hint for a catalog without namespaces."""
        return f"catalog {self.name} has no tables"

    def close(self) -> None:
        """As ``Catalog.close``."""
        self._reports.close()
        self._client.close()

    def _all_tables(self) -> list[Identifier]:
        with suppress(CatalogError):
            return self.tables()
        return []
