"""Turns a catalog's response about a table into a Table.

Where the catalog does not hand out the keys of S3, it signs the requests for files. Source:
Iceberg's OpenAPI specification, "signRequest"; Java ``S3V4RestSignerClient``.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from icesql.catalog.rest.auth import is_proven, is_same_server, resolved
from icesql.catalog.rest.scans import PLAN, RestPlanning
from icesql.catalog.rest.server import RestServer
from icesql.catalog.rest.storage_properties import (
    StorageCredential,
    are_vended,
    storage_properties,
)
from icesql.catalog.table import Identifier, Reports, Table, confining_roots
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    CorruptFileError,
)
from icesql.frozen import Frozen
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact, redact_urls
from icesql.storage.open import Reroot, Storage, is_local
from icesql.storage.stores.options import first, is_signed_elsewhere
from icesql.storage.stores.principal import MARGIN_SECONDS, Lease, expires_at
from icesql.storage.stores.signed import Signature

# ------------------------------------------------------------------ signed requests


SIGN: Final = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
# Names with and without the store: the second since Iceberg 1.11.
_URI: Final = ("s3.signer.uri", "signer.uri")
_ENDPOINT: Final = ("s3.signer.endpoint", "signer.endpoint")
_DEFAULT: Final = "v1/aws/s3/sign"
# As in Java; S3 accepts a signature for a quarter of an hour.
_KEPT_SECONDS: Final = 30.0
_MOST_KEPT: Final = 10_000
# Limits the concurrent requests of many readers to the size of the connection pool.
_AT_ONCE: Final = 8


class SigningConfig(Frozen):
    """Fields that the server requires in every signing request."""

    properties: dict[str, str] | None = None
    headers: dict[str, list[str]] | None = None


class _Signed(Frozen):
    uri: str
    headers: dict[str, list[str]]


def signing_address(server: RestServer, identifier: Sequence[str], table: Mapping[str, Any]) -> str:
    """The URL that signs requests: the table's property, the catalog's, else the default.

    The default is the table's own endpoint, if the server has one. Raises CatalogError if the
    user's credentials would be sent to another server.
    """
    given, properties = server.given, server.properties
    both = {**properties, **table}
    base = str(first(both, *_URI) or properties["uri"])
    own = server.path(SIGN, identifier) if server.has_endpoint(SIGN) else ()
    default = "/".join(quote(part, safe="") for part in own) or _DEFAULT
    place = resolved(base, str(first(both, *_ENDPOINT) or default))
    known = [str(properties["uri"]), *(str(given[key]) for key in _URI if given.get(key))]
    if is_proven(given) and not is_same_server(place, known):
        shown = redact(place, {**given, **properties})
        raise CatalogError(
            f"catalog {server.name}: its server wants S3 requests signed by {shown}, which is "
            "another server; your credentials are not sent there unless you set that address "
            f"yourself: {_URI[0]}={shown}"
        )
    return place


class RemoteSigner:
    """Has requests signed at one URL; after unpickling it opens the server itself.

    Signing requests are sent with the table's own ``token``, if there is one. Signatures that the
    server allows to cache are valid for every range of an object.
    """

    def __init__(
        self,
        server: RestServer,
        address: str,
        config: SigningConfig | None,
        token: str | None = None,
    ) -> None:
        self._server: RestServer | None = server
        self._name, self._given = server.name, server.given
        self._address, self._config = address, config or SigningConfig()
        self._token = token
        self._clear()

    def _clear(self) -> None:
        self._lock, self._gate = threading.Lock(), threading.BoundedSemaphore(_AT_ONCE)
        self._kept = BoundedCache(_MOST_KEPT)

    def __getstate__(self) -> dict[str, Any]:
        left_here = ("_server", "_lock", "_gate", "_kept")
        return {key: value for key, value in self.__dict__.items() if key not in left_here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _server=None)
        self._clear()

    def sign(
        self, method: str, region: str, uri: str, headers: Mapping[str, str], *, anew: bool
    ) -> Signature:
        """As ``Signer.sign``."""
        key = method, region, uri
        if anew:
            self._kept.remove(key)
        kept: tuple[float, Signature] | None = self._kept.get(key)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        with self._lock:
            if self._server is None:
                self._server = RestServer(self._name, self._given)
            server = self._server
        body = {
            "method": method,
            "region": region,
            "uri": uri,
            "headers": {name: [value] for name, value in headers.items()},
            "properties": self._config.properties or {},
            "provider": "s3",
        }
        extra = {name: ", ".join(each) for name, each in (self._config.headers or {}).items()}
        client = server.client
        with self._gate:
            answer = client.request_at(
                "POST", self._address, headers=extra, body=body, again=True, token=self._token
            )
        signed: _Signed = client.decoded(answer.body, _Signed)
        signed_headers = {
            name: ", ".join(each)
            for name, each in signed.headers.items()
            if name.lower() != "cache-control"
        }
        found = Signature(signed.uri, signed_headers)
        if answer.headers.get("cache-control", "").lower() == "private":
            until = time.monotonic() + _KEPT_SECONDS
            # The range header is not signed, so it is removed from the cached signature.
            general = {
                name: value for name, value in signed_headers.items() if name.lower() != "range"
            }
            self._kept.put(key, (until, Signature(signed.uri, general, is_kept=True)), 1)
        return found


# ------------------------------------------------------------------ tables


# Java's switch for renewing credentials from the catalog.
_RENEWAL: Final = "client.refresh-credentials-enabled"


class LoadedTable(Frozen, rename="kebab"):
    """The response to a request for a table; ``metadata`` is its JSON as sent."""

    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, Any] | None = None
    storage_credentials: list[StorageCredential] | None = None
    remote_signing_config: SigningConfig | None = None

    @property
    def token(self) -> str | None:
        """The token for further requests about this table, if the catalog issued one."""
        found = (self.config or {}).get("token")
        return found if isinstance(found, str) and found else None

    @property
    def location(self) -> str:
        """The folder of the table. Raises CorruptFileError if the metadata has none."""
        try:
            return msgspec.json.decode(self.metadata, type=_Located).location
        except (msgspec.DecodeError, RecursionError) as error:
            raise CorruptFileError(
                redact_urls(self.metadata_location or "metadata sent by the catalog"), str(error)
            ) from error


class Vended(Frozen, rename="kebab"):
    """The response to a request for credentials only."""

    storage_credentials: list[StorageCredential]


def fresh_until(loaded: LoadedTable) -> float:
    """When a response must no longer be reused, in seconds since 1970: credentials in it expire."""
    vended = [each.config for each in loaded.storage_credentials or []]
    found = map(expires_at, [loaded.config or {}, *vended])
    until = min((each for each in found if each is not None), default=math.inf)
    return until - MARGIN_SECONDS


class _Located(Frozen):
    location: str


# Makes a function that fetches new storage properties: of the table, or of the plan of an id.
Renewing = Callable[[str | None], Callable[[], Mapping[str, str]]]


def table_of(
    identifier: Identifier,
    loaded: LoadedTable,
    server: RestServer,
    renewing: Renewing,
    reports: Reports | None,
) -> Table:
    """The table in a response, with the storage properties of that response.

    Raises CorruptFileError for metadata that does not parse; CatalogError if the catalog requires
    to plan the scans itself, but cannot; AccessDeniedError for a table on this machine if tables
    are confined to their own folders: the server chose that folder.
    """
    name = ".".join(identifier)
    path = loaded.metadata_location or f"metadata sent for {name}"
    if not bytes(loaded.metadata):
        raise CorruptFileError(path, "no metadata")
    metadata = parse_metadata(bytes(loaded.metadata), redact_urls(path))
    # Without a metadata file, the location in the metadata is the table's folder.
    place = loaded.metadata_location or f"{metadata.location}/metadata/x"
    if server.confine is True and is_local(place):
        raise AccessDeniedError(
            f"catalog {server.name} says that {name} lies on this machine, which needs the folders "
            "named that its tables may lie in",
            argument="confine",
        )
    roots = confining_roots(server.confine, place)

    def storage_of(
        credentials: list[StorageCredential] | None, plan_id: str | None = None
    ) -> Storage:
        sent = replace(loaded, storage_credentials=credentials)
        found = properties_of(sent, server, metadata.location)
        switch = str(server.properties.get(_RENEWAL) or "true").lower()
        is_lent = are_vended(found) and switch != "false"
        return Storage(
            found,
            Reroot(metadata.location, metadata.location, confine=roots)
            if is_local(metadata.location)
            else None,
            cache=server.cache,
            confine=roots,
            lease=Lease(found, renewing(plan_id)) if is_lent else None,
            signer=_signer(identifier, loaded, server, found),
        )

    storage = storage_of(loaded.storage_credentials)
    if not _is_planned_there(loaded, server, name):
        return Table(identifier, metadata, path, storage, reports)
    # The catalog plans the scans itself, so it needs no reports of them.
    planning = RestPlanning(server, identifier, storage_of)
    return Table(identifier, metadata, path, storage, None, planning)


def _is_planned_there(loaded: LoadedTable, server: RestServer, name: str) -> bool:
    """True if the catalog plans the scans; its setting for the table overrides the user's."""
    key = "scan-planning-mode"
    mode = str((loaded.config or {}).get(key) or server.properties.get(key) or "client").lower()
    if mode not in ("client", "server", "catalog"):
        raise CatalogError(f"catalog {server.name}: {key} is {mode[:60]!r}, not client or server")
    if mode == "client":
        return False
    if server.has_endpoint(PLAN) is False:
        raise CatalogError(
            f"catalog {server.name}: it is to plan the scans of {name} itself, but its endpoints "
            "do not include planTableScan"
        )
    return True


def _signer(
    identifier: Identifier, loaded: LoadedTable, server: RestServer, found: Mapping[str, str]
) -> RemoteSigner | None:
    if not is_signed_elsewhere(found):
        return None
    address = signing_address(server, identifier, loaded.config or {})
    # Another server, which the user configured, does not accept this catalog's tokens.
    own = is_same_server(address, [str(server.properties["uri"])])
    token = loaded.token if own else None
    return RemoteSigner(server, address, loaded.remote_signing_config, token)


def properties_of(loaded: LoadedTable, server: RestServer, location: str) -> dict[str, str]:
    """As ``storage_properties``, for a response."""
    return storage_properties(
        server.name,
        server.given,
        server.properties,
        loaded.config or {},
        loaded.storage_credentials or [],
        location,
    )


# Snapshots of a table whose metadata has only those of its branches and tags.


class ReferencedFirst(Mapping[int, Snapshot]):
    """The snapshots of refs; a lookup of any other snapshot fetches all of them."""

    def __init__(
        self,
        referenced: Mapping[int, Snapshot],
        fetch: Callable[[], Mapping[int, Snapshot]],
    ) -> None:
        self._referenced, self._fetch = referenced, fetch
        self._all: Mapping[int, Snapshot] | None = None

    def _whole(self) -> Mapping[int, Snapshot]:
        if self._all is None:
            self._all = self._fetch()
        return self._all

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._referenced.get(snapshot_id)
        return self._whole()[snapshot_id] if found is None else found

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._referenced or snapshot_id in self._whole()

    def __iter__(self) -> Iterator[int]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker needs only the snapshot that it reads, which is loaded already.
        return dict, (dict(self._referenced if self._all is None else self._all),)
