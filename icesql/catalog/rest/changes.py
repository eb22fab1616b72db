"""Changes of a REST catalog: commits, new tables, names.

Source: Iceberg REST catalog specification; Java ``RESTTableOperations`` and ``ErrorHandlers``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from icesql.catalog.rest.answers import Answer, NoAnswer, Refusal
from icesql.catalog.rest.server import RestServer
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


def swap(
    server: RestServer, identifier: Sequence[str], base_location: str | None, change: TableChange
) -> Swap:
    """As ``Catalog.swap``: the server applies the updates if the requirements hold."""
    server.forget()
    refuse_missing(server, COMMIT, f"commits in catalog {server.name}")
    is_new = base_location is None
    if is_new and not any(isinstance(each, u.AddSnapshot) for each in change.updates):
        # All servers can create an empty table; some reject one with a first snapshot.
        refuse_missing(server, CREATE, f"new tables in catalog {server.name}")
        body = create_request(identifier[-1], change, staged=False)
        return _posted(server, server.place_of(identifier)[:-1], body, identifier)
    return _posted(server, server.place_of(identifier), _changed(identifier, change), identifier)


def has_transactions(server: RestServer) -> bool:
    """True if the server lists the endpoint that commits several tables atomically."""
    return server.has_endpoint(TOGETHER) is True


def swap_several(server: RestServer, changes: Sequence[tuple[Sequence[str], TableChange]]) -> Swap:
    """As ``swap`` for several tables: all changes are applied, or none."""
    several = [_changed(identifier, change) for identifier, change in changes]
    path = "transactions", "commit"
    return _posted(server, path, {"table-changes": several}, changes[0][0])


def register(server: RestServer, identifier: Sequence[str], location: str) -> Swap:
    """As ``Registering.register``: the server reads the file."""
    server.forget()
    refuse_missing(server, REGISTER, f"register_table in catalog {server.name}")
    path = "namespaces", server.joined(identifier[:-1]), "register"
    body = {"name": identifier[-1], "metadata-location": location}
    return _posted(server, path, body, identifier)


def named(identifier: Sequence[str]) -> dict[str, Any]:
    """An identifier in the body of a request."""
    return {"namespace": [*identifier[:-1]], "name": identifier[-1]}


def _changed(identifier: Sequence[str], change: TableChange) -> dict[str, Any]:
    return {
        "identifier": named(identifier),
        "requirements": [requirement_json(each) for each in change.requirements],
        "updates": [u.update_json(each) for each in change.updates],
    }


def _posted(
    server: RestServer, path: Sequence[str], body: Mapping[str, Any], identifier: Sequence[str]
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
    server: RestServer,
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


def stage(server: RestServer, identifier: Sequence[str], change: TableChange) -> Answer:
    """Request the location and credentials of a new table. Raises CatalogError if it exists."""
    refuse_missing(server, CREATE, f"new tables in catalog {server.name}")
    return sent(
        server, "POST", *server.place_of(identifier)[:-1],
        refused={409: f"{'.'.join(identifier)} already exists"},
        body=create_request(identifier[-1], change, staged=True), headers=server.delegating(),
    )  # fmt: skip


def drop(server: RestServer, identifier: Sequence[str], *, purge: bool = False) -> None:
    """As ``Catalog.drop``."""
    query = {"purgeRequested": "true" if purge else "false"}
    try:
        server.send("DELETE", *server.place_of(identifier), query=query)
    except Refusal as error:
        if error.status == 404:
            raise TableNotFoundError(".".join(identifier)) from error
        raise


def rename(server: RestServer, identifier: Sequence[str], new: Sequence[str]) -> None:
    """As ``Catalog.rename``."""
    refuse_missing(server, RENAME, f"renaming tables of catalog {server.name}")
    try:
        send_rename(server, "tables", identifier, new)
    except Refusal as error:
        _raise(error, ".".join(identifier))


def send_rename(
    server: RestServer, kind: str, identifier: Sequence[str], new: Sequence[str]
) -> None:
    """Rename one of the "tables" or "views". Raises CatalogError if the new name is taken."""
    body = {"source": named(identifier), "destination": named(new)}
    taken = {409: f"{'.'.join(new)} already exists"}
    sent(server, "POST", kind, "rename", refused=taken, body=body)


def create_namespace(server: RestServer, namespace: Sequence[str]) -> None:
    """As ``Catalog.create_namespace``."""
    refuse_missing(server, "POST /v1/{prefix}/namespaces", f"new namespaces in {server.name}")
    taken = {409: f"namespace {'.'.join(namespace)} already exists"}
    body = {"namespace": [*namespace], "properties": {}}
    sent(server, "POST", "namespaces", refused=taken, body=body)


def drop_namespace(server: RestServer, namespace: Sequence[str]) -> None:
    """As ``Catalog.drop_namespace``."""
    endpoint = "DELETE /v1/{prefix}/namespaces/{namespace}"
    refuse_missing(server, endpoint, f"dropping namespaces of {server.name}")
    name = f"namespace {'.'.join(namespace)}"
    refused = {409: f"{name} is not empty", 404: f"{name} not found"}
    sent(server, "DELETE", "namespaces", server.joined(namespace), refused=refused)


def sent(
    server: RestServer, method: str, *path: str, refused: Mapping[int, str], **options: Any
) -> Answer:
    """As ``RestServer.send``; raises CatalogError with the text of ``refused`` for its statuses."""
    try:
        return server.send(method, *path, **options)
    except Refusal as error:
        if text := refused.get(error.status):
            raise CatalogError(text) from error
        raise


def refuse_missing(server: RestServer, endpoint: str, what: str) -> None:
    """Raise NotSupportedError if the server lists its endpoints without this one."""
    if server.has_endpoint(endpoint) is False:
        raise NotSupportedError(f"not supported: {what}; its server does not list {endpoint}")
