"""RestCatalog: namespaces, tables and views of a REST catalog; a table is loaded in one request."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from icesql.catalog.identifiers import not_found
from icesql.catalog.rest import changes
from icesql.catalog.rest.answers import Refusal, check_unrestricted
from icesql.catalog.rest.changes import named, refuse_missing, send_rename, sent
from icesql.catalog.rest.loaded import (
    LoadedTable,
    ReferencedFirst,
    Vended,
    fresh_until,
    properties_of,
    table_of,
)
from icesql.catalog.rest.scans import ScanReports, TableReports
from icesql.catalog.rest.server import RestServer
from icesql.catalog.table import Identifier, StoredView, Table
from icesql.catalog.writes.change import Place, TableChange
from icesql.errors import (
    CatalogError,
    CommitConflictError,
    UnsupportedTableError,
)
from icesql.frozen import Frozen
from icesql.iceberg.metadata.views import NewView, parse_view, version_json
from icesql.iceberg.metadata.writing import schema_json
from icesql.storage.credentials import redact_urls

# ------------------------------------------------------------------ views


_LIST_VIEWS: Final = "GET /v1/{prefix}/namespaces/{namespace}/views"
_CREATE_VIEW: Final = "POST /v1/{prefix}/namespaces/{namespace}/views"
_REPLACE_VIEW: Final = "POST /v1/{prefix}/namespaces/{namespace}/views/{view}"
_DROP_VIEW: Final = "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}"
_LOAD_VIEW: Final = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"


class LoadedView(Frozen, rename="kebab"):
    """The response to a request for a view; ``metadata`` is its JSON as sent."""

    metadata: msgspec.Raw
    metadata_location: str | None = None


def list_views(server: RestServer, namespace: Sequence[str]) -> list[Identifier]:
    """The views directly in a namespace; empty if the catalog does not support views."""
    if server.has_endpoint(_LIST_VIEWS) is False:
        return []
    try:
        return sorted(server.listed_names("views", namespace))
    except Refusal as error:
        if error.status in (404, 405, 406, 501):
            return []
        raise


def stored_view(server: RestServer, identifier: Sequence[str]) -> StoredView | None:
    """Load a view; None if there is none of this name."""
    wanted = tuple(identifier)
    if len(wanted) < 2 or server.has_endpoint(_LOAD_VIEW) is False:
        return None
    try:
        answer = server.send(_LOAD_VIEW, wanted)
    except Refusal as error:
        if error.status in (400, 404, 405, 406, 501):
            return None
        raise
    check_unrestricted(answer.body, ".".join(wanted))
    loaded: LoadedView = server.client.decoded(answer.body, LoadedView)
    path = redact_urls(loaded.metadata_location or f"metadata sent for {'.'.join(wanted)}")
    return StoredView(wanted, parse_view(bytes(loaded.metadata), path), server.name)


def create_view(server: RestServer, identifier: Identifier, new: NewView) -> None:
    """Create a view. Raises CatalogError if a table or view of its name exists."""
    now_ms = time.time_ns() // 1_000_000
    body = {
        "name": identifier[-1],
        "schema": schema_json(new.schema),
        "view-version": version_json(new, 1, new.schema.schema_id, now_ms),
        "properties": dict(new.properties),
    }
    taken = CatalogError(f"{'.'.join(identifier)} already exists")
    sent(server, _CREATE_VIEW, identifier, "new views in catalog {}", {409: taken}, body=body)


def replace_view(server: RestServer, old: StoredView, new: NewView) -> None:
    """Add a version to a view. Raises CommitConflictError if another view has its name now."""
    now_ms = time.time_ns() // 1_000_000
    version = version_json(new, old.metadata.version_id + 1, -1, now_ms)
    updates: list[dict[str, Any]] = [
        {"action": "add-schema", "schema": schema_json(new.schema)},
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    if new.properties:
        updates.append({"action": "set-properties", "updates": dict(new.properties)})
    _change(server, old, updates)


def change_properties(
    server: RestServer, old: StoredView, given: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Set and remove properties. Raises CommitConflictError as ``replace_view``."""
    updates: list[dict[str, Any]] = []
    if given:
        updates.append({"action": "set-properties", "updates": dict(given)})
    if removed:
        updates.append({"action": "remove-properties", "removals": [*removed]})
    _change(server, old, updates)


def rename_view(server: RestServer, identifier: Identifier, new: Identifier) -> None:
    """Rename a view. Raises CatalogError if the new name is taken."""
    send_rename(server, "views", identifier, new)


def _change(server: RestServer, old: StoredView, updates: list[dict[str, Any]]) -> None:
    refuse_missing(server, _REPLACE_VIEW, "changes of views in catalog {}")
    identifier = old.identifier
    body = {
        "identifier": named(identifier),
        "requirements": [{"type": "assert-view-uuid", "uuid": old.metadata.uuid}],
        "updates": updates,
    }
    try:
        server.send(_REPLACE_VIEW, identifier, body=body)
    except Refusal as error:
        if error.status == 409:
            name = ".".join(identifier)
            raise CommitConflictError(f"the view {name} was changed meanwhile: {error}") from error
        raise


def drop_view(server: RestServer, identifier: Identifier) -> bool:
    """Remove a view from the catalog; False if there was none."""
    refuse_missing(server, _DROP_VIEW, "DROP VIEW in catalog {}")
    try:
        server.send(_DROP_VIEW, identifier)
    except Refusal as error:
        if error.status == 404:
            return False
        raise
    return True


# ------------------------------------------------------------------ the catalog


_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
_LOAD: Final = f"GET {_TABLE}"
_REPORT: Final = f"POST {_TABLE}/metrics"
_HAS_VIEW: Final = "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}"
_CREDENTIALS: Final = f"GET {_TABLE}/credentials"


class RestCatalog(RestServer):
    """An Iceberg REST catalog.

    ``properties`` are the user's; the first request fetches those that the server's configuration
    adds or overrides. Unchanged tables are not sent again (ETag).
    """

    # A call may wait for another machine.
    may_wait = True
    kind = "rest"

    @cached_property
    def _reports(self) -> ScanReports:
        return ScanReports(self._post_report)

    def __repr__(self) -> str:
        return f"RestCatalog({self.name!r})"

    # ------------------------------------------------------------------ tables

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; the metadata is the JSON in the catalog's response.

        The storage has the credentials that the catalog vended for the table.
        """
        wanted = tuple(identifier)
        if len(wanted) < 2:
            everything: list[Identifier] = []
            with suppress(CatalogError):
                everything = self.tables()
            raise not_found(wanted, everything, f"catalog {self.name}")
        try:
            return self._load(wanted)
        except Refusal as error:
            if error.status != 404:
                raise
            if self._is_view(wanted):
                raise UnsupportedTableError("views of a catalog", table=".".join(wanted)) from error
            return self._load(self.other_spelling(wanted, error))

    def _is_view(self, identifier: Identifier) -> bool:
        if self.has_endpoint(_HAS_VIEW) is False:
            return False
        try:
            self.send(_HAS_VIEW, identifier)
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
        return self._made(identifier, self._fetched(identifier, mode))

    def _made(self, identifier: Identifier, loaded: LoadedTable) -> Table:
        renewing = partial(Renewal, self, identifier, loaded.location)
        return table_of(identifier, loaded, self, renewing, self._reports_of(identifier))

    def _fetched(self, identifier: Identifier, mode: str) -> LoadedTable:
        kept: tuple[str, LoadedTable, float] | None = self._kept.get((*identifier, mode))
        headers = self.delegating()
        if kept is not None and time.time() < kept[2]:
            headers["If-None-Match"] = kept[0]
        query = {"snapshots": mode} if mode == "refs" else None
        answer = self.send(_LOAD, identifier, query=query, headers=headers)
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

    def credentials(
        self, identifier: Sequence[str], location: str, plan_id: str | None = None
    ) -> Mapping[str, str]:
        """The storage properties of a table at ``location``, with newly vended credentials.

        ``plan_id`` identifies the scan whose files are read, if the catalog planned it.
        """
        wanted = tuple(identifier)
        self.forget()  # a cached response would have the old credentials
        if self.has_endpoint(_CREDENTIALS):
            query = None if plan_id is None else {"planId": plan_id}
            answer = self.request(_CREDENTIALS, wanted, query=query)
            vended: Vended = self._client.decoded(answer.body, Vended)
            loaded = LoadedTable(msgspec.Raw(b""), storage_credentials=vended.storage_credentials)
        else:
            loaded = self._fetched(wanted, "refs")
        return properties_of(loaded, self, location)

    # ------------------------------------------------------------------ views

    views_in = list_views
    load_view = stored_view

    # ------------------------------------------------------------------ changes

    swap = changes.swap
    register = changes.register
    rename = changes.rename
    drop = changes.drop
    create_namespace = changes.create_namespace
    drop_namespace = changes.drop_namespace

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """As ``Catalog.place_new``: the server's location, with the credentials that it vends."""
        wanted = tuple(identifier)
        answer = changes.stage(self, wanted, change)
        made = self._made(wanted, self._client.decoded(answer.body, LoadedTable))
        return Place(made.metadata.location, made.storage)

    def _post_report(self, identifier: Identifier, report: Mapping[str, Any]) -> None:
        self.request(_REPORT, identifier, body=report)

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


class Renewal:
    """Fetches new storage properties of one table; after unpickling it opens the catalog itself.

    Its pickle therefore contains the user's credentials for the catalog.
    """

    def __init__(
        self,
        catalog: RestCatalog,
        identifier: Identifier,
        location: str,
        plan_id: str | None = None,
    ) -> None:
        self._catalog: RestCatalog | None = catalog
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
        if self._catalog is None:
            self._catalog = RestCatalog(self._name, self._given)
            self._catalog.use_token(self._identifier, self._token)
        return self._catalog.credentials(self._identifier, self._location, self._plan_id)
