"""Who reads a store: cached reads belong to one principal; catalogs lend credentials."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from icesql.errors import CatalogError
from icesql.storage.credentials import is_secret
from icesql.storage.open import one_store
from icesql.storage.stores.options import is_signed_elsewhere

# The variables that the client of a store reads if it is given no credentials.
_ENVIRONMENT: Final = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
    "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID", "AZURE_TENANT_ID",
    "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY",
)  # fmt: skip
_STORES: Final = ("s3.", "client.", "gcs.", "adls.", "hdfs.")
# A principal with temporary keys from a catalog is identified by its credentials there.
_LENT: Final = ("s3.session-token", "client.session-token", "gcs.oauth2.token")
# Set with credentials that a catalog vends: a digest of what the user showed the catalog.
PRINCIPAL: Final = "catalog.principal-key"
# The properties that a catalog vends, as JSON by the prefix that they are for, and by "" those for
# all other places.
VENDED: Final = "catalog.vended-credentials"
_CATALOG: Final = (PRINCIPAL, "uri", "warehouse", "prefix", "credential", "token", "scope", "type")
_CHANGING: Final = ("expires", "timeout", "progress")


def properties_at(properties: Mapping[str, str], uri: str) -> tuple[str, Mapping[str, str]]:
    """The longest prefix of ``uri`` that credentials are vended for, and the properties there.

    Credentials open nothing outside of their prefix. A path that a store may take for another one,
    such as ``a/../b``, has no prefix but "".
    """
    held = properties.get(VENDED)
    if held is None:
        return "", properties
    vended = _vended(held)
    is_plain = not {".", ".."} & {*unquote(uri).split("/")}
    fitting = [each for each in vended if is_plain and begins(uri, each)]
    prefix = max(fitting, key=len, default="")
    return prefix, vended[prefix]


@functools.lru_cache(maxsize=16)
def _vended(held: str) -> dict[str, dict[str, str]]:
    return msgspec.json.decode(held, type=dict[str, dict[str, str]])


def begins(location: str, prefix: str) -> bool:
    """True if a location begins with a prefix, in any scheme of the same store."""
    return _plain(location).startswith(_plain(prefix))


def _plain(location: str) -> str:
    scheme, sign, rest = location.partition("://")
    # Mount points of viewfs are no paths of HDFS.
    return location if scheme == "viewfs" else f"{one_store(scheme)}{sign}{rest}"


def identity(scheme: str, authority: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Texts that differ wherever endpoint or principal do; secrets are among them.

    Keys that a catalog lends change every hour, and those that it signs with are unknown here. Then
    the credentials shown to the catalog identify the principal instead: the catalog checks them,
    and may refuse them, each time a table is loaded. A user with only the public name of a
    principal's key, not its secret, has another identity.
    """
    is_lent = (
        is_signed_elsewhere(properties)
        or any(properties.get(name) for name in _LENT)
        or any(name.startswith("adls.sas-token") for name in properties)
    )
    own_keys = {
        name: str(value)
        for name, value in properties.items()
        if name in _CATALOG or name.startswith(("header.", "auth.", "rest.", "oauth2"))
    }
    by_catalog = is_lent and ("uri" in own_keys or PRINCIPAL in own_keys)
    own = {
        name: str(value)
        for name, value in properties.items()
        if name.startswith(_STORES)
        and not any(word in name for word in _CHANGING)
        and not (by_catalog and (is_secret(name) or "access-key" in name))
    }
    used = {**own, **own_keys} if by_catalog else own
    parts = [scheme, authority]
    for name in sorted(used):
        parts += [name, used[name]]
    if not by_catalog and not any(is_secret(name) for name in own):
        for name in _ENVIRONMENT:
            parts += [name, os.environ.get(name, "")]
    return tuple(parts)


# ------------------------------------------------------------------ lent credentials


# As Iceberg's Java client does: fetched five minutes before they expire.
MARGIN_SECONDS: Final = 300.0
# A store that refuses fresh credentials refuses for another reason.
_SHORTEST_SECONDS: Final = 10.0
# Endings of the property names; the account of a token may follow.
_EXPIRES: Final = ("expires-at-ms", "token-expires-at", "expiration-ms")


class Lease:
    """Storage properties with credentials that expire; safe for threads.

    ``renew`` fetches the properties from the catalog again, and may raise CatalogError. However
    many threads find them expired or refused, it is called once for them all. A pickled lease
    renews for itself, if ``renew`` pickles.
    """

    def __init__(
        self, properties: Mapping[str, str], renew: Callable[[], Mapping[str, str]]
    ) -> None:
        self._properties, self._renew = properties, renew
        self._lock = threading.Lock()
        self._tried: float | None = None
        self._problem: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._properties, self._renew)

    def current(self) -> Mapping[str, str]:
        """The properties to use now, renewed shortly before they expire.

        If the catalog returns no others, the old ones.
        """
        until = expires_at(self._properties)
        if until is None or time.time() < until - MARGIN_SECONDS:
            return self._properties
        with self._lock:
            until = expires_at(self._properties)
            if until is not None and time.time() >= until - MARGIN_SECONDS and self._may_renew():
                try:
                    self._fetch()
                except CatalogError:
                    if time.time() >= until:
                        raise
            return self._properties

    def renewed(self, refused: Mapping[str, str]) -> bool:
        """Whether there are others than ``refused``, which a store did not take.

        Raises CatalogError when the catalog gives none.
        """
        with self._lock:
            if self._properties is refused:
                if not self._may_renew():
                    if self._problem is not None:
                        raise CatalogError(self._problem)
                    return False
                self._fetch()
            return self._properties is not refused

    def _may_renew(self) -> bool:
        if self._tried is None:
            return True
        until = expires_at(self._properties)
        is_over = until is not None and time.time() >= until
        return time.monotonic() - self._tried >= (1.0 if is_over else _SHORTEST_SECONDS)

    def _fetch(self) -> None:
        self._tried, self._problem = time.monotonic(), None
        try:
            found = dict(self._renew())
        except CatalogError as error:
            self._problem = str(error)
            raise
        if found != self._properties:
            self._properties = found


def expires_at(properties: Mapping[str, Any]) -> float | None:
    """When the first of the credentials expires, in seconds since 1970; None without a time."""
    found = []
    for name, value in properties.items():
        if any(name.endswith(end) or f"{end}." in name for end in _EXPIRES):
            try:
                found.append(int(str(value)) / 1000)
            except ValueError:
                continue
    return min(found, default=None)
