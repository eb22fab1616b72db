"""Views of a REST catalog."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from icesql.catalog.rest.answers import Refusal, check_unrestricted
from icesql.catalog.rest.changes import named, refuse_missing, send_rename, sent
from icesql.catalog.rest.server import RestServer
from icesql.catalog.table import Identifier
from icesql.catalog.view import StoredView
from icesql.errors import CatalogError, CommitConflictError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_writer import schema_json
from icesql.iceberg.metadata.view_changes import NewView, version_json
from icesql.iceberg.metadata.view_metadata import parse_view
from icesql.storage.credentials import redact_urls

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
