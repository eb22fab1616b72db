"""Authentication of requests to a REST catalog, and the servers that may get its credentials.

Tokens, OAuth2, passwords, SigV4, PyIceberg's. They are sent only to the user's own server.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from icesql.catalog.client_errors import translated
from icesql.catalog.rest.answers import Request, Sender
from icesql.errors import CatalogError, MissingExtraError
from icesql.storage.credentials import redact, without_secrets
from icesql.storage.stores.options import flag

# ------------------------------------------------------------------ servers of addresses


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


# ------------------------------------------------------------------ authentication


# A token is renewed after this fraction of its lifetime, so that none expires in transit.
_LIFE: Final = 0.9
_SHORTEST_LIFE: Final = 30.0  # seconds
_LIFE_UNSAID: Final = 3600.0


class Auth:
    """A fixed header Authorization, "" for none; the base class of the authentication methods.

    ``secrets`` are tokens of this session to redact, under names that mark them as secret.
    """

    def __init__(self, header: str = "") -> None:
        self._header = header
        self.secrets: Mapping[str, str] = {"authorization-sent": header} if header else {}

    def proof(self, client: Sender) -> str:
        """The value of the header Authorization. Raises CatalogError if there can be none."""
        return self._header

    def headers(self, client: Sender, request: Request) -> Mapping[str, str]:
        """The headers of ``request`` with credentials. Raises as ``proof``."""
        proof = self.proof(client)
        return {**request.headers, "Authorization": proof} if proof else request.headers

    def renew(self) -> bool:
        """True if a retry after a 401 will have new credentials."""
        return False


class Bearer(Auth):
    """A fixed token: the user's, or one that the catalog issued for a table."""

    def __init__(self, token: str) -> None:
        super().__init__(f"Bearer {token}")
        self.secrets = {"token-sent": token}


class ClientCredentials(Bearer):
    """OAuth2: exchanges an id and a secret for a token, which is renewed before it expires.

    ``form`` and ``headers`` are sent to the token endpoint ``server``. A token without
    ``expires_in`` is valid for ``life`` seconds. Threads share one token.
    """

    def __init__(
        self, server: str, form: Mapping[str, str], headers: Mapping[str, str], life: float
    ) -> None:
        self.secrets = {}
        self._server, self._headers, self._life = server, headers, life
        self._form = {key: value for key, value in form.items() if value}
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def proof(self, client: Sender) -> str:
        """As ``Auth.proof``; concurrent threads wait for the same token request."""
        with self._lock:
            if time.monotonic() > self._until:
                self._fetch(client)
            return f"Bearer {self._token}"

    def renew(self) -> bool:
        """As ``Auth.renew``."""
        with self._lock:
            self._until = 0.0
        return True

    def _fetch(self, client: Sender) -> None:
        sent = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            **self._headers,
        }
        data = urlencode(self._form).encode()
        answer = client.send(Request("POST", self._server, sent, data))
        if answer.status >= 300:
            refusal = client.refusal(answer)
            # Not a Refusal: status 404 or 403 would be taken for that of the catalog request.
            raise CatalogError(
                f"catalog {client.name}: the token request was refused: "
                f"{str(refusal).partition(': ')[2]}"
            )
        found = client.decoded(answer.body, dict[str, Any])
        token = found.get("access_token")
        if not isinstance(token, str) or not token:
            raise CatalogError(f"catalog {client.name}: the token server sent no access_token")
        life = found.get("expires_in")
        seconds = float(life) if isinstance(life, int | float) and life > 0 else self._life
        # The last one may still be in a request.
        self.secrets = {"token-before": self._token, "token-now": token}
        self._token, self._until = token, time.monotonic() + max(seconds * _LIFE, _SHORTEST_LIFE)


class SigV4(Auth):
    """AWS signatures, with the credentials of botocore's own chain (profiles, SSO, roles)."""

    def __init__(self, name: str, properties: Mapping[str, Any]) -> None:
        super().__init__()
        try:
            from botocore.session import Session
        except ImportError as error:
            raise MissingExtraError(
                f"catalog {name}: the package botocore that it needs", extra="rest-sigv4"
            ) from error
        session = Session(profile=properties.get("client.profile-name"))
        region = properties.get("rest.signing-region") or properties.get("client.region")
        self._region = str(region or session.get_config_variable("region") or "us-east-1")
        self._service = str(properties.get("rest.signing-name") or "execute-api")
        keys = ("client.access-key-id", "client.secret-access-key")
        if all(properties.get(key) for key in keys):
            token = properties.get("client.session-token")
            session.set_credentials(*(str(properties[key]) for key in keys), token)
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise CatalogError(
                f"catalog {name}: no AWS credentials were found to sign requests with; set "
                "client.access-key-id and client.secret-access-key, or log in with aws"
            )

    def headers(self, client: Sender, request: Request) -> Mapping[str, str]:
        """As ``Auth.headers``."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        signed = AWSRequest(request.method, request.url, dict(request.headers), request.body or b"")
        # Taken for each request, since the chain renews credentials that expire.
        SigV4Auth(self._credentials.get_frozen_credentials(), self._service, self._region).add_auth(
            signed
        )
        return dict(signed.headers.items())


class ManagedAuth(Auth):
    """Authentication by a manager of PyIceberg: Google's, Entra's, or a class of the user's.

    The manager is called for each request, and renews its credentials itself. ``chosen`` is the
    block ``auth`` of the user's configuration. Raises CatalogError if the manager cannot be made.
    """

    def __init__(self, name: str, chosen: Mapping[str, Any]) -> None:
        kind = str(chosen.get("type"))
        impl = chosen.get("impl")
        if (kind == "custom") != bool(impl):
            raise CatalogError(f"catalog {name}: auth needs impl for the type custom, and only so")
        super().__init__()
        self._what, self._chosen = f"catalog {name}", dict(chosen)
        with self._asking():
            from pyiceberg.catalog.rest.auth import AuthManagerFactory

            self._manager = AuthManagerFactory.create(str(impl or kind), dict(block(chosen, kind)))

    def proof(self, client: Sender) -> str:
        """As ``Auth.proof``."""
        with self._asking():
            header = self._manager.auth_header() or ""
        self.secrets = {"authorization-sent": header}
        return header

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with without_secrets(self._chosen):
            try:
                yield
            except Exception as error:  # any class: the manager may be the user's own code
                raise translated(error, self._what, self._chosen) from error


def auth_of(name: str, uri: str, properties: Mapping[str, Any]) -> Auth:
    """The authentication set in a catalog's properties. Raises CatalogError if incomplete."""
    if isinstance(chosen := properties.get("auth"), Mapping):
        if chosen.get("type") in ("noop", "basic", "oauth2") and not chosen.get("impl"):
            return _chosen(name, chosen)
        return ManagedAuth(name, chosen)
    if flag(properties, "rest.sigv4-enabled"):
        return SigV4(name, properties)
    if properties.get("credential"):
        return _credential(uri, properties)
    if properties.get("token"):
        return Bearer(str(properties["token"]))
    return Auth()


def _credential(uri: str, properties: Mapping[str, Any]) -> Auth:
    """OAuth2 by the property credential ("id:secret" or "secret"), scope and related properties."""
    client_id, colon, secret = str(properties["credential"]).partition(":")
    if not colon:
        client_id, secret = "", client_id
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": secret,
        "scope": str(properties.get("scope") or "catalog"),
        "audience": str(properties.get("audience") or ""),
        "resource": str(properties.get("resource") or ""),
    }
    server = resolved(uri, str(properties.get("oauth2-server-uri") or "v1/oauth/tokens"))
    return ClientCredentials(server, form, {}, _LIFE_UNSAID)


def _chosen(name: str, auth: Mapping[str, Any]) -> Auth:
    """Authentication by PyIceberg's block ``auth``: a type, and its options under its name."""
    kind = str(auth.get("type"))
    own = block(auth, kind)

    def needed(key: str) -> str:
        if not own.get(key):
            raise CatalogError(f"catalog {name}: auth of type {kind} needs {key}")
        return str(own[key])

    if kind == "basic":
        return Auth(_basic(needed("username"), needed("password")))
    if kind != "oauth2":
        return Auth()
    headers = {"Authorization": _basic(needed("client_id"), needed("client_secret"))}
    form = {"grant_type": "client_credentials", "scope": str(own.get("scope") or "")}
    try:
        life = float(own.get("expires_in") or _LIFE_UNSAID)
    except ValueError:
        life = _LIFE_UNSAID
    return ClientCredentials(needed("token_url"), form, headers, life)


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
