"""Remote signing: the catalog signs requests to S3 and does not hand out its keys.

Source: Iceberg's OpenAPI specification, "signRequest"; Java ``S3V4RestSignerClient``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from icesql.catalog.rest.origins import is_proven, is_same_server, resolved
from icesql.catalog.rest.server import RestServer
from icesql.errors import CatalogError
from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact
from icesql.storage.stores.options import first
from icesql.storage.stores.signed import Signature

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
