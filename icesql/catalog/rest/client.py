"""Sends requests to a REST catalog: addresses, redirects, retries, error messages."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from icesql.catalog.client_errors import no_answer, short
from icesql.catalog.rest.answers import Answer, NoAnswer, Refusal, Request
from icesql.catalog.rest.auth import Auth, Bearer, block, redirected
from icesql.errors import CatalogError
from icesql.storage.credentials import redact, without_secrets
from icesql.storage.stores.client import connections, log_request, proxy_of
from icesql.storage.stores.options import first

if TYPE_CHECKING:
    import urllib3

# Statuses that pass, such as those of a catalog that is restarting for a second or two.
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
_MOST_TRIES: Final = 4
_READS: Final = ("GET", "HEAD")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 3
_FIRST_WAIT: Final = 0.2  # seconds, doubled by each try
_LONGEST_WAIT: Final = 5.0
# Variables that name the certificates of authorities.
_BUNDLES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_LARGEST: Final = 512 << 20  # bytes of a response
_STEP: Final = 1 << 20
_MOST_VALUES: Final = 5_000_000  # in a response that is decoded without a type
_CONNECT_SECONDS, _READ_SECONDS, _ANSWER_SECONDS = 10.0, 60.0, 300.0
_ADVICE: Final = {
    401: ("401 Unauthorized", "check its token or credential"),
    403: ("403 Forbidden", "these credentials may not do that"),
    419: ("419", "the token has expired"),
    429: ("429 Too Many Requests", "try again later"),
    503: ("503 Service Unavailable", "try again later"),
    400: ("400 Bad Request", ""),
}


class RestClient:
    """The HTTP client of one catalog; thread-safe.

    ``properties`` are the catalog's; errors never show the secrets among them.
    """

    def __init__(self, name: str, uri: str, properties: Mapping[str, Any], auth: Auth) -> None:
        self.name, self.uri, self.properties = name, uri.rstrip("/"), properties
        self._auth = auth
        self._pool = _pool(self.uri, properties)
        self._headers = {
            "Accept": "application/json",
            "User-Agent": "icesql",
            "X-Client-Version": "icesql",
            **{
                key.removeprefix("header."): str(value)
                for key, value in properties.items()
                if key.startswith("header.")
            },
        }

    def request(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Answer:
        """The response to one request, with the ``options`` of ``request_at``.

        Each part of ``path`` is encoded as one segment. Raises CatalogError.
        """
        if any(part in (".", "..") for part in path):
            # Such a segment would lead to another path, however it is encoded.
            raise Refusal(f"catalog {self.name}: no name in it is a dot or two", 404)
        url = "/".join((self.uri, *(quote(part, safe="") for part in path)))
        url += f"?{urlencode(query)}" if query else ""
        return self.request_at(method, url, **options)

    def request_at(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        again: bool = False,
        token: str | None = None,
    ) -> Answer:
        """The response to one request to a URL that the caller has checked: it gets credentials.

        Reads, and with ``again`` other requests, are retried while the catalog is overloaded.
        ``token`` replaces the catalog's own token until the server rejects it. Raises CatalogError.
        """
        data = None if body is None else msgspec.json.encode(body)
        sent = {**self._headers, **(headers or {})}
        if data is not None:
            sent["Content-Type"] = "application/json"
        # As in Java, tokens of tables are used only with authentication by token.
        by_token = isinstance(self._auth, Bearer)
        auth = Bearer(token) if token and by_token else self._auth
        with without_secrets(self._secrets(auth)):
            return self._tried(Request(method, url, sent, data), again or method in _READS, auth)

    def json(self, method: str, *path: str, kind: Any = Any, **options: Any) -> Any:
        """As ``request``, with its body decoded, of which every value becomes an object."""
        body = self.request(method, *path, **options).body
        # A list of 3 bytes takes 80.
        if sum(map(body.count, (b"[", b"{", b","))) > _MOST_VALUES:
            raise CatalogError(
                f"catalog {self.name}: its answer has more than {_MOST_VALUES:,} values"
            )
        return self.decoded(body, kind)

    def decoded(self, body: bytes, kind: Any) -> Any:
        """Decode a JSON body as a type. Raises CatalogError for an invalid response."""
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise CatalogError(f"catalog {self.name}: {self._malformed(body, error)}") from None

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    # ------------------------------------------------------------------ tries

    def _secrets(self, auth: Auth) -> dict[str, Any]:
        """The secrets to redact from errors."""
        return {**self.properties, **self._auth.secrets, **auth.secrets}

    def _tried(self, request: Request, safe: bool, auth: Auth) -> Answer:
        renewed, redirects, number = False, 0, 1
        is_read = request.method in _READS
        while True:
            signed = auth.headers(self, request)
            answer = self.send(replace(request, headers=signed))
            place = answer.headers.get("location")
            if answer.status in _REDIRECTS and place and is_read and redirects < _MOST_REDIRECTS:
                redirects += 1
                url = redirected(self.name, request.url, place, self.properties)
                request = replace(request, url=url)
            elif answer.status < 300 or (answer.status == 304 and "If-None-Match" in signed):
                return answer
            elif answer.status in (401, 419) and auth is not self._auth:
                auth = self._auth  # the table's token has expired
            elif answer.status in (401, 419) and not renewed and auth.renew():
                renewed = True
            elif safe and answer.status in _TRANSIENT and number < _MOST_TRIES:
                time.sleep(_wait(number, answer.headers.get("retry-after")))
                number += 1
            else:
                raise self.refusal(answer, auth)

    def send(self, request: Request) -> Answer:
        """Send one request and return the response of any status. Raises NoAnswer without one."""
        from urllib3.exceptions import HTTPError

        from icesql.catalog.rest.sockets import Ending

        begun, body, outcome = time.perf_counter(), b"", "no answer"
        ending = Ending(_ANSWER_SECONDS)
        try:
            with ending:
                response = self._pool.request(
                    request.method, request.url, headers=dict(request.headers), body=request.body,
                    preload_content=False, redirect=False, decode_content=True,
                )  # fmt: skip
                outcome = f"status {response.status}"
                try:
                    body = self._body(response)
                    if ending.is_over:  # a truncated response may look complete
                        response.close()
                        raise OSError("the request was ended")
                finally:
                    response.release_conn()
        except (HTTPError, OSError, ValueError) as error:
            place = redact("/".join(request.url.split("/", 3)[:3]), self.properties)
            reason = redact(no_answer(error, str(error)), self.properties)
            if ending.is_over:
                reason = f"its answer did not come in {_ANSWER_SECONDS:.0f} seconds"
            problem = f"catalog {self.name}: cannot reach {place}: {reason}"
            raise NoAnswer(problem, _was_sent(error)) from None
        finally:
            secrets = self._secrets(self._auth)
            log_request(request.method, request.url, begun, len(body), outcome, secrets)
        return Answer(
            response.status, {key.lower(): text for key, text in response.headers.items()}, body
        )

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        parts, total = [], 0
        for part in response.stream(_STEP):
            parts.append(part)
            total += len(part)
            if total > _LARGEST:
                response.close()
                raise NoAnswer(f"catalog {self.name}: its answer has more than {_LARGEST:,} bytes")
        return b"".join(parts)

    # ------------------------------------------------------------------ words

    def refusal(self, answer: Answer, auth: Auth | None = None) -> Refusal:
        """The exception for a response that is no success."""
        known = self._secrets(auth or self._auth)
        message, kind = _message(answer.body)
        message = short(redact(message, known))
        status, advice = _ADVICE.get(answer.status, ("", ""))
        if not status and answer.status >= 500:
            status = "the catalog failed"
        elif answer.status < 400:
            status, message = f"status {answer.status}, which is no answer to this request", ""
        elif not status and not message:
            status = f"status {answer.status}"
        text = ": ".join(filter(None, (status, message)))
        text = "; ".join(filter(None, (text, advice)))
        return Refusal(f"catalog {self.name}: {text}", answer.status, kind)

    def _malformed(self, body: bytes, error: Exception) -> str:
        known = self._secrets(self._auth)
        start = short(redact(body[:400].decode("utf-8", "replace"), known), 60)
        if body.lstrip()[:1] in (b"{", b"["):
            return f"invalid response: {short(redact(str(error), known))}"
        page = " (an HTML page)" if start.lower().startswith("<") else ""
        uri = redact(self.uri, known)
        return (
            f"its answer is not JSON{page}: {start}; is {uri} the address of an Iceberg REST "
            "catalog?"
        )


def _pool(uri: str, properties: Mapping[str, Any]) -> urllib3.PoolManager:
    """A connection pool for ``uri``, with the environment's proxy and the user's own CA."""
    import urllib3

    from icesql.catalog.rest.sockets import watched

    tls = block(properties, "ssl")
    client = block(tls, "client")
    secure: dict[str, Any] = {}
    if uri.startswith("https"):
        bundle = tls.get("cabundle") or properties.get("ssl.cabundle")
        secure = {
            "ca_certs": bundle or first(os.environ, *_BUNDLES),
            "cert_file": client.get("cert"),
            "key_file": client.get("key"),
        }
    made = connections(
        proxy_of(uri),
        timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
        # Redirects are followed in this class: urllib3 would send the headers to another server.
        retries=urllib3.Retry(0, raise_on_status=False, raise_on_redirect=False),
        maxsize=8,
        **secure,
    )
    return watched(made)


def _wait(number: int, retry_after: str | None) -> float:
    """Seconds before the next try: the server's Retry-After, else exponential with jitter."""
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), _LONGEST_WAIT)
    longest = _FIRST_WAIT * float(1 << (number - 1))
    return min(longest, _LONGEST_WAIT) * random.uniform(0.5, 1.0)


def _message(body: bytes) -> tuple[str, str]:
    """The message and kind in an error response; the title of an HTML page."""
    try:
        found = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        title = re.search(r"(?i)<title>([^<]*+)</title>", text)
        return (title[1] if title else re.sub(r"<[^<>]*+>", " ", text)).strip(), ""
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, dict):
        return str(error.get("message") or ""), str(error.get("type") or "")
    if isinstance(error, str):  # OAuth2's form
        return str(found.get("error_description") or error), error
    return "", ""


def _was_sent(error: BaseException) -> bool:
    """False if no connection was made, so that the request cannot have had an effect."""
    from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

    below = error.reason if isinstance(error, MaxRetryError) else error
    return not isinstance(below, NewConnectionError | ConnectTimeoutError)
