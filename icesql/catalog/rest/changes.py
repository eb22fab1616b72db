"""Changes of a REST catalog: commits, new tables, names.

Source: Iceberg REST catalog specification; Java ``RESTTableOperations`` and ``ErrorHandlers``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, Protocol

from icesql.catalog.rest.answers import Answer, NoAnswer, Refusal
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.catalog.writes.new_places import requested_location
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    Error,
    NotSupportedError,
    TableNotFoundError,
)
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.requirements import requirement_json
from icesql.iceberg.metadata.json_writer import schema_json, sort_order_json, spec_json

# The server did not start the request.
_TOO_MANY: Final = 429
# The server did not process the request; but a gateway may answer so for one that it passed on.
_BUSY: Final = 503
# The server does not support the request. After all other statuses from 500 on, also those of
# proxies, and after a timeout the outcome is unknown: the request may have been applied.
_UNABLE: Final = frozenset({501, 505})
_TOOK_TOO_LONG: Final = frozenset({408, 460, 499})
_SENT_AGAIN: Final = 3
_WAIT_SECONDS: Final = 1.0
_TABLES: Final = "/v1/{prefix}/namespaces/{namespace}/tables"
COMMIT: Final = f"POST {_TABLES}/{{table}}"
CREATE: Final = f"POST {_TABLES}"
REGISTER: Final = "POST /v1/{prefix}/namespaces/{namespace}/register"
TOGETHER: Final = "POST /v1/{prefix}/transactions/commit"
RENAME: Final = "POST /v1/{prefix}/tables/rename"


class Server(Protocol):
    """The part of a catalog that a change uses."""

    name: str

    def send(self, method: str, *path: str, **options: Any) -> Answer:
        """Send a request to a path below the catalog's prefix. Raises CatalogError."""

    def token_of(self, identifier: Sequence[str]) -> str | None:
        """The token that the server issued for requests about a table."""

    def joined(self, namespace: Sequence[str]) -> str:
        """A namespace as one segment of a URL path."""

    def has_endpoint(self, endpoint: str) -> bool | None:
        """True if the server lists this endpoint; None if it lists none at all."""

    @property
    def is_idempotent(self) -> bool:
        """True if the server applies a repeated request with the same idempotency key only once."""


def swap(server: Server, identifier: Sequence[str], is_new: bool, change: TableChange) -> Swap:
    """As ``Catalog.swap``: the server applies the updates if the requirements hold."""
    refuse_missing(server, COMMIT, f"commits in catalog {server.name}")
    body = {
        "identifier": {"namespace": [*identifier[:-1]], "name": identifier[-1]},
        "requirements": [requirement_json(each) for each in change.requirements],
        "updates": [u.update_json(each) for each in change.updates],
    }
    path = "namespaces", server.joined(identifier[:-1]), "tables", identifier[-1]
    if is_new and not any(isinstance(each, u.AddSnapshot) for each in change.updates):
        # All servers can create an empty table; some reject one with a first snapshot.
        return _created(server, identifier, change)
    return _posted(server, path, body, identifier)


def has_transactions(server: Server) -> bool:
    """True if the server lists the endpoint that commits several tables atomically."""
    return server.has_endpoint(TOGETHER) is True


def swap_several(server: Server, changes: Sequence[tuple[Sequence[str], TableChange]]) -> Swap:
    """As ``swap`` for several tables: all changes are applied, or none."""
    several = [
        {
            "identifier": {"namespace": [*identifier[:-1]], "name": identifier[-1]},
            "requirements": [requirement_json(each) for each in change.requirements],
            "updates": [u.update_json(each) for each in change.updates],
        }
        for identifier, change in changes
    ]
    path = "transactions", "commit"
    return _posted(server, path, {"table-changes": several}, changes[0][0])


def register(server: Server, identifier: Sequence[str], location: str) -> Swap:
    """As ``Registering.register``."""
    refuse_missing(server, REGISTER, f"register_table in catalog {server.name}")
    path = "namespaces", server.joined(identifier[:-1]), "register"
    body = {"name": identifier[-1], "metadata-location": location}
    return _posted(server, path, body, identifier)


def _created(server: Server, identifier: Sequence[str], change: TableChange) -> Swap:
    refuse_missing(server, CREATE, f"new tables in catalog {server.name}")
    path = "namespaces", server.joined(identifier[:-1]), "tables"
    return _posted(server, path, create_request(identifier[-1], change, staged=False), identifier)


def _posted(
    server: Server, path: Sequence[str], body: Mapping[str, Any], identifier: Sequence[str]
) -> Swap:
    """Send a change; if its outcome is unknown, repeat it, provided that it has an idempotency key.

    A refusal of a repetition is not the outcome of the first request, which may have been applied.
    """
    key = {"Idempotency-Key": str(uuid.uuid4())} if server.is_idempotent else {}
    first = _once(server, path, body, key, identifier)
    if not isinstance(first, Unknown) or not key:
        return first
    for _ in range(_SENT_AGAIN):
        time.sleep(_WAIT_SECONDS)
        try:
            found = _once(server, path, body, key, identifier)
        except Error:
            break
        if isinstance(found, Done):
            return found
    return first


def _once(
    server: Server,
    path: Sequence[str],
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    identifier: Sequence[str],
) -> Swap:
    name, token = ".".join(identifier), server.token_of(identifier)
    try:
        answer = server.send("POST", *path, body=body, headers=headers, token=token)
    except NoAnswer as error:
        if not error.was_sent:
            raise
        return Unknown(str(error))
    except Refusal as error:
        if error.status == 409:
            return Conflict(str(error), may_be_ours=True)
        if error.status == _TOO_MANY:
            return Conflict(f"the catalog is busy: {error}")
        if error.status in _TOOK_TOO_LONG or (error.status >= 500 and error.status not in _UNABLE):
            return Unknown(str(error), is_busy=error.status == _BUSY)
        _raise(error, name)
    return Done(f"metadata of {name} in catalog {server.name}" if not answer.body else "")


def _raise(error: Refusal, name: str) -> NoReturn:
    if error.status == 404:
        raise TableNotFoundError(name, hint=str(error)) from error
    if error.status == 403:
        raise AccessDeniedError(str(error), argument="the catalog") from error
    if error.status in (406, 501):
        raise NotSupportedError(f"not supported by the catalog: {error}") from error
    raise error


def create_request(name: str, change: TableChange, *, staged: bool) -> dict[str, Any]:
    """The body of the request that creates a table from the updates of a change."""
    body: dict[str, Any] = {"name": name, "stage-create": staged}
    properties: dict[str, str] = {}
    for each in change.updates:
        match each:
            case u.AddSchema(schema):
                body["schema"] = schema_json(schema)
            case u.AddPartitionSpec(spec):
                body["partition-spec"] = spec_json(spec)
            case u.AddSortOrder(order):
                body["write-order"] = sort_order_json(order)
            case u.UpgradeFormatVersion(version):
                properties["format-version"] = str(version)
            case u.SetProperties(given):
                properties |= given
    location = requested_location(change)
    return body | {"properties": properties} | ({"location": location} if location else {})


# ------------------------------------------------------------------ names


def rename(server: Server, identifier: Sequence[str], new: Sequence[str]) -> None:
    """As ``Catalog.rename``."""
    refuse_missing(server, RENAME, f"renaming tables of catalog {server.name}")
    body = {
        "source": {"namespace": [*identifier[:-1]], "name": identifier[-1]},
        "destination": {"namespace": [*new[:-1]], "name": new[-1]},
    }
    try:
        server.send("POST", "tables", "rename", body=body)
    except Refusal as error:
        if error.status == 409:
            raise CatalogError(f"{'.'.join(new)} already exists") from error
        _raise(error, ".".join(identifier))


def create_namespace(server: Server, namespace: Sequence[str]) -> None:
    """As ``Catalog.create_namespace``."""
    refuse_missing(server, "POST /v1/{prefix}/namespaces", f"new namespaces in {server.name}")
    try:
        server.send("POST", "namespaces", body={"namespace": [*namespace], "properties": {}})
    except Refusal as error:
        if error.status == 409:
            raise CatalogError(f"namespace {'.'.join(namespace)} already exists") from error
        raise


def drop_namespace(server: Server, namespace: Sequence[str]) -> None:
    """As ``Catalog.drop_namespace``."""
    endpoint = "DELETE /v1/{prefix}/namespaces/{namespace}"
    refuse_missing(server, endpoint, f"dropping namespaces of {server.name}")
    try:
        server.send("DELETE", "namespaces", server.joined(namespace))
    except Refusal as error:
        if error.status == 409:
            raise CatalogError(f"namespace {'.'.join(namespace)} is not empty") from error
        if error.status == 404:
            raise CatalogError(f"namespace {'.'.join(namespace)} not found") from error
        raise


def refuse_missing(server: Server, endpoint: str, what: str) -> None:
    """Raise NotSupportedError if the server lists its endpoints without this one."""
    if server.has_endpoint(endpoint) is False:
        raise NotSupportedError(f"not supported: {what}; its server does not list {endpoint}")
