"""How requests to a REST catalog prove who asks: a token, OAuth2's client credentials, SigV4."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from icesql.catalog.rest.answers import Refusal, Request, Sender
from icesql.errors import CatalogError, MissingExtraError

# A token is renewed when this part of its life is over, so that none expires on the way.
_LIFE: Final = 0.9
_SHORTEST_LIFE: Final = 30.0  # seconds


class Auth:
    """No proof at all, and the base of the others."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """Tokens that were given out in this session, by names that mark them as secret."""
        return {}

    def headers(self, client: Sender, request: Request) -> Mapping[str, str]:
        """The headers of ``request`` with the proof. Raises CatalogError where there is none."""
        return request.headers

    def renew(self) -> bool:
        """Whether another try may bring another proof after a 401."""
        return False


class Bearer(Auth):
    """A token that the user has."""

    def __init__(self, token: str) -> None:
        self._token = token

    @property
    def secrets(self) -> Mapping[str, str]:
        """As ``Auth.secrets``."""
        return {"token": self._token}

    def headers(self, client: Sender, request: Request) -> Mapping[str, str]:
        """As ``Auth.headers``."""
        return {**request.headers, "Authorization": f"Bearer {self.token(client)}"}

    def token(self, client: Sender) -> str:
        """The token to send now. Raises CatalogError when none is given."""
        return self._token


class ClientCredentials(Bearer):
    """OAuth2: an id and a secret become a token, which is renewed before it expires.

    ``properties`` are the catalog's: credential ("id:secret" or "secret"), scope,
    oauth2-server-uri, audience, resource. Several threads ask for one token.
    """

    def __init__(self, uri: str, properties: Mapping[str, Any]) -> None:
        self._server = str(properties.get("oauth2-server-uri") or f"{uri}/v1/oauth/tokens")
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
        self._form = {key: value for key, value in form.items() if value}
        super().__init__("")
        self._lock = threading.Lock()
        self._given: list[str] = []
        self._until = 0.0

    @property
    def secrets(self) -> Mapping[str, str]:
        """As ``Auth.secrets``."""
        return {f"token-{number}": token for number, token in enumerate(self._given[-2:])}

    def token(self, client: Sender) -> str:
        """As ``Bearer.token``; several threads wait for one request."""
        with self._lock:
            if not self._token or time.monotonic() > self._until:
                self._fetch(client)
            return self._token

    def renew(self) -> bool:
        """As ``Auth.renew``."""
        with self._lock:
            self._token = ""
        return True

    def _fetch(self, client: Sender) -> None:
        sent = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        data = urlencode(self._form).encode()
        answer = client.send(Request("POST", self._server, sent, data))
        if answer.status >= 300:
            told = client.refusal(answer)
            raise Refusal(
                f"catalog {client.name}: the token request was refused: "
                f"{str(told).partition(': ')[2]}",
                answer.status,
            )
        found = client.decoded(answer.body, dict[str, Any])
        token = found.get("access_token")
        if not isinstance(token, str) or not token:
            raise CatalogError(f"catalog {client.name}: the token server sent no access_token")
        life = found.get("expires_in")
        seconds = float(life) if isinstance(life, int | float) and life > 0 else 3600.0
        self._token, self._until = token, time.monotonic() + max(seconds * _LIFE, _SHORTEST_LIFE)
        self._given.append(token)
        del self._given[:-2]


class SigV4(Auth):
    """AWS signatures, with the credentials of botocore's own chain (profiles, SSO, roles)."""

    def __init__(self, name: str, properties: Mapping[str, Any]) -> None:
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
        # Frozen for each request: the chain renews credentials that expire.
        SigV4Auth(self._credentials.get_frozen_credentials(), self._service, self._region).add_auth(
            signed
        )
        return dict(signed.headers.items())


def auth_of(name: str, uri: str, properties: Mapping[str, Any]) -> Auth:
    """The proof that a catalog's properties ask for."""
    if str(properties.get("rest.sigv4-enabled", "")).lower() in ("true", "1"):
        return SigV4(name, properties)
    if properties.get("credential"):
        return ClientCredentials(uri, properties)
    if properties.get("token"):
        return Bearer(str(properties["token"]))
    return Auth()


def is_understood(properties: Mapping[str, Any]) -> bool:
    """Whether ``auth_of`` knows the kind of proof; PyIceberg has others."""
    return "auth" not in properties
