"""Who reads a store: cached reads of one principal are not given to another."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

import msgspec

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
