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
from icesql.catalog.writes.change import (
    Conflict,
    Done,
    Swap,
    TableChange,
    Unknown,
    requested_location,
)
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    Error,
    NotSupportedError,
    TableNotFoundError,
)
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.updates import requirement_json
from icesql.iceberg.metadata.writing import schema_json, sort_order_json, spec_json

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
_NAMESPACES: Final = "/v1/{prefix}/namespaces"
_TABLES: Final = f"{_NAMESPACES}/{{namespace}}/tables"
_COMMIT: Final = f"POST {_TABLES}/{{table}}"
_CREATE: Final = f"POST {_TABLES}"
_REGISTER: Final = f"POST {_NAMESPACES}/{{namespace}}/register"
_TOGETHER: Final = "POST /v1/{prefix}/transactions/commit"
_DROP: Final = "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}"
_NEW_TABLES: Final = "new tables in catalog {}"
_CREATE_NAMESPACE: Final = f"POST {_NAMESPACES}"
_DROP_NAMESPACE: Final = "DELETE /v1/{prefix}/namespaces/{namespace}"


def swap(
    server: RestServer, identifier: Sequence[str], base_location: str | None, change: TableChange
) -> Swap:
    """As ``Catalog.swap``: the server applies the updates if the requirements hold."""
    server.forget()
    refuse_missing(server, _COMMIT, "commits in catalog {}")
    is_new = base_location is None
    if is_new and not any(isinstance(each, u.AddSnapshot) for each in change.updates):
        # All servers can create an empty table; some reject one with a first snapshot.
        refuse_missing(server, _CREATE, _NEW_TABLES)
        body = create_request(identifier[-1], change, staged=False)
        return _posted(server, _CREATE, identifier, body)
    return _posted(server, _COMMIT, identifier, _changed(identifier, change))


def has_transactions(server: RestServer) -> bool:
    """True if the server lists the endpoint that commits several tables atomically."""
    return server.has_endpoint(_TOGETHER) is True


def swap_several(server: RestServer, changes: Sequence[tuple[Sequence[str], TableChange]]) -> Swap:
    """As ``swap`` for several tables: all changes are applied, or none."""
    several = [_changed(identifier, change) for identifier, change in changes]
    return _posted(server, _TOGETHER, changes[0][0], {"table-changes": several})


def register(server: RestServer, identifier: Sequence[str], location: str) -> Swap:
    """Register a metadata file as a table; the server reads it."""
    server.forget()
    refuse_missing(server, _REGISTER, "register_table in catalog {}")
    body = {"name": identifier[-1], "metadata-location": location}
    return _posted(server, _REGISTER, identifier, body)


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
    server: RestServer, endpoint: str, identifier: Sequence[str], body: Mapping[str, Any]
) -> Swap:
    """Send a change; if its outcome is unknown, repeat it, provided that it has an idempotency key.

    A refusal of a repetition is not the outcome of the first request, which may have been applied.
    """
    key = {"Idempotency-Key": str(uuid.uuid4())} if server.configured().is_idempotent else {}
    first = _once(server, endpoint, identifier, body, key)
    if not isinstance(first, Unknown) or not key:
        return first
    for _ in range(_SENT_AGAIN):
        time.sleep(_WAIT_SECONDS)
        try:
            found = _once(server, endpoint, identifier, body, key)
        except Error:
            break
        if isinstance(found, Done):
            return found
    return first


def _once(
    server: RestServer,
    endpoint: str,
    identifier: Sequence[str],
    body: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Swap:
    name, token = ".".join(identifier), server.token_of(identifier)
    try:
        answer = server.send(endpoint, identifier, body=body, headers=headers, token=token)
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
    taken = CatalogError(f"{'.'.join(identifier)} already exists")
    body, headers = create_request(identifier[-1], change, staged=True), server.delegating()
    return sent(server, _CREATE, identifier, _NEW_TABLES, {409: taken}, body=body, headers=headers)


def drop(server: RestServer, identifier: Sequence[str], *, purge: bool = False) -> None:
    """As ``Catalog.drop``."""
    query = {"purgeRequested": "true" if purge else "false"}
    try:
        server.send(_DROP, identifier, query=query)
    except Refusal as error:
        if error.status == 404:
            raise TableNotFoundError(".".join(identifier)) from error
        raise


def rename(server: RestServer, identifier: Sequence[str], new: Sequence[str]) -> None:
    """As ``Catalog.rename``."""
    try:
        send_rename(server, "tables", identifier, new)
    except Refusal as error:
        _raise(error, ".".join(identifier))


def send_rename(
    server: RestServer, kind: str, identifier: Sequence[str], new: Sequence[str]
) -> None:
    """Rename one of the "tables" or "views". Raises CatalogError if the new name is taken."""
    endpoint = f"POST /v1/{{prefix}}/{kind}/rename"
    body = {"source": named(identifier), "destination": named(new)}
    taken = CatalogError(f"{'.'.join(new)} already exists")
    sent(server, endpoint, (), f"renaming {kind} of catalog {{}}", {409: taken}, body=body)


def create_namespace(server: RestServer, namespace: Sequence[str]) -> None:
    """As ``Catalog.create_namespace``."""
    taken = CatalogError(f"namespace {'.'.join(namespace)} already exists")
    body = {"namespace": [*namespace], "properties": {}}
    sent(server, _CREATE_NAMESPACE, (), "new namespaces in {}", {409: taken}, body=body)


def drop_namespace(server: RestServer, namespace: Sequence[str]) -> None:
    """As ``Catalog.drop_namespace``."""
    name = f"namespace {'.'.join(namespace)}"
    refused = {409: CatalogError(f"{name} is not empty"), 404: CatalogError(f"{name} not found")}
    sent(server, _DROP_NAMESPACE, (*namespace, ""), "dropping namespaces of {}", refused)


def sent(
    server: RestServer,
    endpoint: str,
    identifier: Sequence[str],
    what: str,
    refused: Mapping[int, Error],
    **options: Any,
) -> Answer:
    """As ``RestServer.send``; raises as ``refuse_missing``, and ``refused`` for its statuses."""
    refuse_missing(server, endpoint, what)
    try:
        return server.send(endpoint, identifier, **options)
    except Refusal as error:
        if found := refused.get(error.status):
            raise found from error
        raise


def refuse_missing(server: RestServer, endpoint: str, what: str) -> None:
    """Raise NotSupportedError if the server lists its endpoints without this one.

    ``what`` says with "{}" for the name of the catalog what it is for.
    """
    if server.has_endpoint(endpoint) is False:
        raise NotSupportedError(
            f"not supported: {what.format(server.name)}; its server does not list {endpoint}"
        )
