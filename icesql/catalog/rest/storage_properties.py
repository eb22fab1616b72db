"""Storage properties of a catalog's table: the user's, the server's, vended credentials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from icesql.catalog.properties import is_of_catalog, of_server, of_storage
from icesql.catalog.rest.origins import origin
from icesql.errors import CatalogError
from icesql.storage.credentials import is_secret, redact
from icesql.storage.stores.client_options import is_signed_elsewhere
from icesql.storage.stores.principal import PRINCIPAL

# Where requests go that carry a secret as it is, not a signature; and those secrets.
_ADDRESSES: Final = (
    "gcs.service.host",
    "adls.blob-storage-authority",
    "adls.dfs-storage-authority",
)
_SECRETS: Final = {"gcs": "gcs.oauth2.token", "adls": "adls.sas-token"}
_OF_STORES: Final = {
    "gcs": (".googleapis.com",),
    "adls": (".core.windows.net", ".core.usgovcloudapi.net", ".core.chinacloudapi.cn"),
}


class StorageCredential(Struct, frozen=True):
    """Properties for the locations that begin with ``prefix``."""

    prefix: str
    config: dict[str, Any] = field(default_factory=dict)


def storage_properties(
    name: str,
    given: Mapping[str, Any],
    properties: Mapping[str, Any],
    table: Mapping[str, Any],
    vended: Iterable[StorageCredential],
    location: str,
) -> dict[str, str]:
    """The catalog's storage properties, the table's on them, its vended credentials on both.

    ``given`` are the user's properties, ``properties`` those with the server's configuration,
    ``table`` those of the table's answer. Of several credentials the one with the longest prefix
    of ``location`` counts; of a single one the prefix is taken for granted. Raises CatalogError
    where the server would have a secret of the user's sent to an address of its own.
    """
    found = _of_catalog(properties) | of_server(table)
    offered = list(vended)
    fitting = [each for each in offered if _begins(location, each.prefix)]
    fitting = fitting or (offered if len(offered) == 1 else [])
    if fitting:
        found |= of_server(max(fitting, key=lambda each: len(each.prefix)).config)
    _check_addresses(name, given, found)
    if is_signed_elsewhere(found) or any(
        _is_of_user(key) and value != given.get(key) for key, value in found.items()
    ):
        found[PRINCIPAL] = _principal(given)
    return found


def are_vended(properties: Mapping[str, str]) -> bool:
    """Whether ``storage_properties`` has credentials of the catalog in it."""
    return PRINCIPAL in properties


def _is_of_user(key: str) -> bool:
    return is_secret(key) or "access-key" in key


def _of_catalog(properties: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in of_storage(properties).items() if key != PRINCIPAL}


def _check_addresses(name: str, given: Mapping[str, Any], found: Mapping[str, str]) -> None:
    for key in _ADDRESSES:
        place = found.get(key)
        if not place or place == str(given.get(key) or ""):
            continue
        store = key.partition(".")[0]
        host = (origin(place if "://" in place else f"https://{place.lstrip('.')}") or ("", ""))[1]
        if f".{host}".endswith(_OF_STORES[store]) and not place.startswith("http://"):
            continue
        secrets = {k: v for k, v in found.items() if k.startswith(_SECRETS[store])}
        lent = any(v and v != str(given.get(k) or "") for k, v in secrets.items())
        anonymous = found.get("gcs.anonymous", "").lower() == "true" and store == "gcs"
        if not (lent or anonymous):
            shown = redact(place, {**given, **found})
            raise CatalogError(
                f"catalog {name}: its server sets {key} to {shown} and vends no credentials for "
                f"it; your own are not sent there unless you set that address yourself: "
                f"{key}={shown}"
            )


def _principal(given: Mapping[str, Any]) -> str:
    """A hash of the user's credentials for a catalog, which does not reveal them."""
    shown = {key: value for key, value in given.items() if is_of_catalog(key)}
    data = msgspec.json.encode(sorted((key, repr(value)) for key, value in shown.items()))
    return hashlib.sha256(data).hexdigest()


def _begins(location: str, prefix: str) -> bool:
    return _plain(location).startswith(_plain(prefix))


def _plain(location: str) -> str:
    """s3a and s3n are s3 by other names."""
    for scheme in ("s3a://", "s3n://"):
        if location.startswith(scheme):
            return "s3://" + location.removeprefix(scheme)
    return location
