"""Storage properties of a catalog's table: the user's, the server's, vended credentials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import field

from icesql.catalog.configuration import is_of_catalog, of_server, of_storage
from icesql.catalog.rest.auth import origin
from icesql.errors import CatalogError
from icesql.frozen import Frozen
from icesql.storage.credentials import is_secret, redact
from icesql.storage.stores.options import is_signed_elsewhere
from icesql.storage.stores.principal import PRINCIPAL, VENDED, begins

# Addresses to which requests send a secret itself, not a signature; and those secrets.
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


class StorageCredential(Frozen):
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
    """The catalog's storage properties, updated with the table's, then its vended credentials.

    ``given`` are the user's properties, ``properties`` those merged with the server's
    configuration, ``table`` those of the table's response. Of several credentials, the one with the
    longest prefix of ``location`` applies. Credentials open the files below their prefix, see
    ``properties_at``. Raises CatalogError if a secret of the user would be sent to an address that
    the server chose.
    """
    found = _of_catalog(properties) | of_server(table)
    offered = {each.prefix: of_server(each.config) for each in vended}
    prefix = max((each for each in offered if begins(location, each)), key=len, default=None)
    # Keys and addresses that the server sent for the table do not apply to other locations.
    elsewhere = {
        key: value
        for key, value in found.items()
        if not (_is_of_user(key) or key in _ADDRESSES) or value == given.get(key)
    }
    found = _known(found if prefix is None else found | offered[prefix], given)
    places = {each: _known(elsewhere | own, given) for each, own in offered.items()}
    for each in (found, *places.values()):
        _check_addresses(name, given, each)
    if places:
        found[VENDED] = msgspec.json.encode({"": elsewhere, **places}).decode()
    return found


def _known(found: dict[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """The properties, with a hash of the user's identity if the catalog vends or signs."""
    if is_signed_elsewhere(found) or any(
        _is_of_user(key) and value != given.get(key) for key, value in found.items()
    ):
        found[PRINCIPAL] = _principal(given)
    return found


def are_vended(properties: Mapping[str, str]) -> bool:
    """True if the result of ``storage_properties`` has credentials of the catalog."""
    return PRINCIPAL in properties or VENDED in properties


def _is_of_user(key: str) -> bool:
    return is_secret(key) or "access-key" in key


def _of_catalog(properties: Mapping[str, Any]) -> dict[str, str]:
    own = (PRINCIPAL, VENDED)
    return {key: value for key, value in of_storage(properties).items() if key not in own}


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
