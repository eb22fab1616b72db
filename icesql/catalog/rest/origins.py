"""Which server an address means: credentials go to the user's own server alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from icesql.errors import CatalogError
from icesql.storage.credentials import redact

_PORTS: Final = {"http": 80, "https": 443}
# Properties by which the user proves who asks. Headers of the user's may, too.
_PROOFS: Final = ("token", "credential", "auth")
# Where a server may send its clients.
_ADDRESSES: Final = ("uri", "oauth2-server-uri")

Origin = tuple[str, str, int]


def origin(url: str) -> Origin | None:
    """Scheme, host and port of an http address, None for anything else."""
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
    """Whether ``url`` has the origin of one of ``known``, or is that server's https."""
    found = origin(url)
    if found is None:
        return False
    own = {origin(each) for each in known}
    return found in own or (found[::2] == ("https", 443) and ("http", found[1], 80) in own)


def is_proven(properties: Mapping[str, Any]) -> bool:
    """Whether requests carry credentials of the user."""
    if any(properties.get(name) for name in _PROOFS):
        return True
    signed = str(properties.get("rest.sigv4-enabled", "")).lower() in ("true", "1")
    tls = properties.get("ssl")
    certified = bool(tls.get("client")) if isinstance(tls, Mapping) else False
    # Those of Iceberg's protocol say what is wanted, not who asks.
    headers = [name.lower() for name in properties if name.startswith("header.")]
    named = any(not name.startswith("header.x-iceberg-") for name in headers)
    return signed or certified or named


def resolved(uri: str, place: str) -> str:
    """An address of a property, which may be a path below the catalog's, as Java takes it."""
    if "://" in place or place.startswith("//"):
        return place
    return f"{uri.rstrip('/')}/{place.lstrip('/')}"


def check_addresses(name: str, given: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    """Raise CatalogError where a server's configuration leads the user's proof elsewhere.

    ``given`` are the user's properties, ``merged`` those with the server's.
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
    """The address that a redirect from ``url`` to ``place`` leads to.

    Raises CatalogError for one on another server: neither credentials nor headers go there.
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
