"""SignedClient: reads of an S3 bucket whose requests the catalog signs, for it has the keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from icesql.errors import CatalogError, NotSupportedError, StorageError
from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache, kept
from icesql.storage.open import one_store
from icesql.storage.stores.client import (
    Failure,
    Received,
    StoreClient,
    StoreFailed,
    connections,
    failure_of,
    proxy_of,
)
from icesql.storage.stores.options import first, flag, is_signed_elsewhere, timeouts

if TYPE_CHECKING:
    import urllib3

_MOST_READ: Final = 64 << 10  # bytes of an error
_MOST_CONNECTIONS: Final = 64


class Signature(Frozen):
    """The address and headers of a signed request; ``is_kept`` if they were used before."""

    uri: str
    headers: Mapping[str, str]
    is_kept: bool = False


class Signer(Protocol):
    """Signs requests with keys of its own; when pickled, in a worker, too."""

    def sign(
        self, method: str, region: str, uri: str, headers: Mapping[str, str], *, anew: bool
    ) -> Signature:
        """The signed request; with ``anew`` not a cached one. Raises CatalogError."""


def signed_client(
    scheme: str, bucket: str, properties: Mapping[str, str], signer: Signer | None
) -> SignedClient | None:
    """The client of a bucket whose requests are signed elsewhere; None for all others."""
    if signer is None or one_store(scheme) != "s3" or not is_signed_elsewhere(properties):
        return None
    return SignedClient(bucket, properties, signer)


class SignedClient(StoreClient):
    """As ``StoreClient``, with a request to the signer for each one without a cached signature."""

    def __init__(self, bucket: str, properties: Mapping[str, str], signer: Signer) -> None:
        super().__init__(None, properties)
        self._signer = signer
        region = first(properties, "s3.region", "client.region") or "us-east-1"
        self._region, self._base = region, _base(bucket, region, properties)
        self._pool = _pool(self._base, properties)

    def _get(self, key: str, start: int, end: int | None, check: Callable[[int], None]) -> Received:
        headers = {"Accept-Encoding": "identity"}
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        response = self._sent("GET", key, headers)
        try:
            position, size = _place(response)
            check(size)
            expected = (size if end is None else min(end, size)) - start
            data = memoryview(self._body(response, max(expected, 0) + 1))
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return Received(data, size, position, position + len(data))

    def _head(self, key: str) -> int:
        response = self._sent("HEAD", key, {"Accept-Encoding": "identity"})
        response.release_conn()
        return int(response.headers.get("Content-Length") or 0)

    def _listing(self, prefix: str) -> tuple[list[str], bool]:
        raise NotSupportedError(
            f"not supported: listing {prefix or 'a bucket'} where the catalog signs S3 requests"
        )

    def _sent(self, method: str, key: str, headers: Mapping[str, str]) -> Any:
        """A successful response, whose body is not read yet."""
        uri = f"{self._base}/{quote(key, safe='/-_.~')}"
        anew = False
        while True:
            try:
                signature = self._signer.sign(method, self._region, uri, headers, anew=anew)
            except CatalogError as error:
                raise StorageError(uri, f"the request was not signed: {error}") from error
            if _object(signature.uri) != _object(uri):
                raise StorageError(uri, "the catalog signed a request to another address")
            response = self._answer(method, signature.uri, _with_signed(headers, signature))
            if response.status < 300:
                return response
            body = response.read(_MOST_READ, decode_content=False).decode("utf-8", "replace")
            response.close()
            if response.status == 404 and method == "HEAD":
                raise FileNotFoundError(uri)
            if response.status not in (401, 403) or not signature.is_kept:
                answer = RuntimeError(f"status code: {response.status}: {body}")
                raise StoreFailed(failure_of(answer, "s3:GetObject"))
            anew = True

    def _answer(self, method: str, uri: str, headers: Mapping[str, str]) -> Any:
        with _answering("the store cannot be reached"):
            return self._pool.request(
                method, uri, headers=dict(headers), preload_content=False, redirect=False
            )

    @staticmethod
    def _body(response: Any, most: int) -> bytes:
        with _answering("the answer was cut off"):
            data: bytes = response.read(most, decode_content=False)
            return data


@contextmanager
def _answering(otherwise: str) -> Iterator[None]:
    """Translate errors of a request; ``otherwise`` describes those that are no timeout."""
    from urllib3.exceptions import HTTPError, TimeoutError

    try:
        yield
    except TimeoutError as error:
        raise StoreFailed(Failure("the store did not answer in time", True)) from error
    except (HTTPError, OSError, ValueError) as error:
        raise StoreFailed(Failure(otherwise, True)) from error


def _with_signed(headers: Mapping[str, str], signature: Signature) -> dict[str, str]:
    """The headers of a request with those that a signer added.

    Signers return all headers that they signed, and may spell names differently. A ``Host`` could
    lead to another bucket, so the address alone decides.
    """
    own = {"host", *(name.lower() for name in headers)}
    added = {name: text for name, text in signature.headers.items() if name.lower() not in own}
    return {**added, **headers}


def _object(uri: str) -> tuple[str, str, str]:
    """The object of an address, without the signature in its query."""
    parts = urlsplit(uri)
    return parts.scheme, parts.netloc, unquote(parts.path)


def _place(response: Any) -> tuple[int, int]:
    """The offset of a response's body in its object, and the length of the object."""
    content_range = str(response.headers.get("Content-Range") or "")
    try:
        if response.status == 206:
            span, _, size = content_range.removeprefix("bytes ").partition("/")
            return int(span.partition("-")[0]), int(size)
        return 0, int(response.headers["Content-Length"])
    except (KeyError, ValueError) as error:
        raise StoreFailed(Failure("the store sent other bytes than requested", True)) from error


def _base(bucket: str, region: str, properties: Mapping[str, str]) -> str:
    """The address of the bucket, without a slash at its end."""
    endpoint = properties.get("s3.endpoint") or ""
    if not endpoint and "." in bucket:
        return f"https://s3.{region}.amazonaws.com/{bucket}"
    if not endpoint:
        return f"https://{bucket}.s3.{region}.amazonaws.com"
    if "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    endpoint = endpoint.rstrip("/")
    if flag(properties, "s3.force-virtual-addressing"):
        scheme, _, host = endpoint.partition("://")
        return f"{scheme}://{bucket}.{host}"
    return f"{endpoint}/{bucket}"


_MOST_POOLS: Final = 32
_pools: Final = BoundedCache(_MOST_POOLS)


def _pool(base: str, properties: Mapping[str, str]) -> urllib3.PoolManager:
    """Connections of this process, kept beyond one load of a table."""
    import urllib3

    proxy = properties.get("s3.proxy-uri")
    if proxy is None:
        proxy = proxy_of(base)
    bundle = first(os.environ, "AWS_CA_BUNDLE", "SSL_CERT_FILE")
    connect, request = timeouts(properties)
    key = os.getpid(), proxy, bundle, connect, request

    def made() -> tuple[urllib3.PoolManager, int]:
        timeout = urllib3.Timeout(connect=connect, read=request)
        # The retries of StoreClient are counted.
        return connections(
            proxy, ca_certs=bundle, timeout=timeout, retries=False, maxsize=_MOST_CONNECTIONS
        ), 1

    return kept(_pools, key, made)
