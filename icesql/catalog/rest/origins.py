"""Compares the servers of addresses: credentials are sent only to the user's own server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from icesql.errors import CatalogError
from icesql.storage.credentials import redact
from icesql.storage.stores.options import flag

_PORTS: Final = {"http": 80, "https": 443}
# Properties with the user's credentials. Headers that the user sets may contain some, too.
_PROOFS: Final = ("token", "credential", "auth")
# Properties by which a server may redirect its clients.
_ADDRESSES: Final = ("uri", "oauth2-server-uri")

Origin = tuple[str, str, int]


def origin(url: str) -> Origin | None:
    """Scheme, host and port of an http or https URL; None for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in _PORTS or not host or any(c.isspace() or c in "\\#?" for c in parts.netloc):
        return None
    return scheme, host, port or _PORTS[scheme]


def is_same_server(url: str, known: Iterable[str]) -> bool:
    """True if ``url`` has the origin of one of ``known``, or the https origin of its http."""
    found = origin(url)
    if found is None:
        return False
    own = {origin(each) for each in known}
    return found in own or (found[::2] == ("https", 443) and ("http", found[1], 80) in own)


def block(properties: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The properties in a property that is a block of some, such as ``ssl``."""
    found = properties.get(name)
    return found if isinstance(found, Mapping) else {}


def is_proven(properties: Mapping[str, Any]) -> bool:
    """True if requests contain credentials of the user."""
    if any(properties.get(name) for name in _PROOFS):
        return True
    signed = flag(properties, "rest.sigv4-enabled")
    certified = bool(block(properties, "ssl").get("client"))
    # Headers of Iceberg's protocol describe the request and contain no credentials.
    headers = [name.lower() for name in properties if name.startswith("header.")]
    named = any(not name.startswith("header.x-iceberg-") for name in headers)
    return signed or certified or named


def resolved(uri: str, place: str) -> str:
    """The URL in a property; as in Java, it may be a path below the catalog's ``uri``."""
    if "://" in place or place.startswith("//"):
        return place
    return f"{uri.rstrip('/')}/{place.lstrip('/')}"


def check_addresses(name: str, given: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    """Raise CatalogError if a server's configuration would send the user's credentials elsewhere.

    ``given`` are the user's properties, ``merged`` those merged with the server's.
    """
    known = [str(given[key]) for key in _ADDRESSES if given.get(key)]
    for key in _ADDRESSES:
        place = str(merged.get(key) or "")
        if key != "uri" and place:
            place = resolved(str(given["uri"]), place)
        if not place or place == str(given.get(key) or "") or is_same_server(place, known):
            continue
        shown = redact(place, merged)
        if origin(place) is None:
            raise CatalogError(f"catalog {name}: its server sets {key} to {shown}, no http address")
        if is_proven(given):
            raise CatalogError(
                f"catalog {name}: its server sets {key} to {shown}, which is another server; "
                "your credentials are not sent there unless you set that address yourself: "
                f"{key}={shown}"
            )


def redirected(name: str, url: str, place: str, properties: Mapping[str, Any]) -> str:
    """The target URL of a redirect from ``url`` to ``place``.

    Raises CatalogError for another server, so that it gets neither credentials nor headers.
    """
    from urllib.parse import urljoin

    try:
        target = urljoin(url, place)
    except ValueError:
        target = ""
    if is_same_server(target, [url]):
        return target
    found = origin(target)
    shown = redact(f"{found[0]}://{found[1]}:{found[2]}" if found else place[:200], properties)
    raise CatalogError(
        f"catalog {name}: it redirects to another server, {shown}, to which nothing is sent; "
        "if that is the catalog, use it as uri"
    )
