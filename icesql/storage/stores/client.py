"""StoreClient: requests to one bucket, with retries; errors have the store's own reasons."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from icesql.errors import Error, StorageError
from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact, without_secrets
from icesql.storage.open import VANISHED, check_size, split_path
from icesql.storage.stores.options import make_store

if TYPE_CHECKING:
    import urllib3


# ------------------------------------------------------------------ failures


_STATUS: Final = re.compile(
    r"status code: (\d{3})[^:\n]*(?:: (.*?))?(?=\n\nDebug source|\Z)", re.DOTALL
)
_FIELD: Final = r"<{0}>([^<]*)</{0}>"
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 509})
_AGAIN_CODES: Final = frozenset({"RequestTimeout", "SlowDown", "InternalError", "ServerBusy"})
_MISSING: Final = frozenset({"", "NoSuchKey", "BlobNotFound", "notFound", "PathNotFound"})
_DENIED: Final = frozenset({"AccessDenied", "AuthorizationPermissionMismatch", "forbidden"})
_EXPIRED: Final = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
_LONGEST: Final = 500
# Why there was no answer, by words of the client's exceptions.
_REASONS: Final = {
    "the store did not answer in time": ("TimedOut", "kind: Timeout"),
    "the answer was cut off": ("IncompleteBody", "kind: Body"),
    "the store cannot be reached": ("ConnectionRefused", "kind: Connect"),
    "the store sent other bytes than requested": (
        "NotPartial", "UnexpectedRange", "InvalidRangeRequest",
    ),
}  # fmt: skip


class RefusedError(StorageError):
    """A store refused the credentials of a request; others may be accepted."""


class Failure(Frozen):
    """One attempt that failed. ``again`` says whether another may succeed."""

    reason: str
    again: bool
    status: int | None = None
    is_missing: bool = False
    is_refusal: bool = False

    def text(self, attempts: int) -> str:
        """The problem as the text of an error."""
        facts = [] if self.status is None or self.is_missing else [f"status {self.status}"]
        if attempts > 1:
            facts.append(f"{attempts} attempts")
        return f"{self.reason} ({', '.join(facts)})" if facts else self.reason


def failure_of(error: BaseException, action: str = "") -> Failure:
    """Describe an exception of the store's client.

    ``action`` is the name of the action that a policy would have to allow, such as s3:GetObject.
    """
    text = str(error)
    found = _STATUS.search(text)
    if action.startswith("s3:") and "Error performing POST" in text:
        return _without_credentials(found, text)
    if found is None:
        return _without_answer(error, text)
    status, body = int(found[1]), (found[2] or "").strip()
    code, message = _code_and_message(body)
    if status == 404 and code in _MISSING:
        return Failure(VANISHED, False, status, True)
    if status == 416:
        return Failure("the file is shorter than its table says", False, status)
    if code in _DENIED and action and action not in message:
        message = f"{message or 'access denied'} [{action}]"
    refusal = status in (401, 403) or code in _EXPIRED
    return _answered(status, code, message, is_refusal=refusal)


def _answered(status: int, code: str, message: str, *, is_refusal: bool = False) -> Failure:
    reason = ": ".join(part for part in (code, message) if part) or _words(status)
    again = status in _AGAIN or code in _AGAIN_CODES
    return Failure(reason[:_LONGEST], again, status, is_refusal=is_refusal)


def _without_credentials(found: re.Match[str] | None, text: str) -> Failure:
    """A failed POST: readers send it only to the token service, for the credentials of a role."""
    if found is None:
        http = "builder error" in text
        why = "its address has to be https" if http else "it cannot be reached"
        return Failure(f"no credentials came from AWS STS: {why}", not http)
    failure = _answered(int(found[1]), *_code_and_message((found[2] or "").strip()))
    advice = "check AWS_ROLE_ARN, its trust policy and AWS_WEB_IDENTITY_TOKEN_FILE"
    return replace(failure, reason=f"no credentials came from AWS STS: {failure.reason}; {advice}")


def _without_answer(error: BaseException, text: str) -> Failure:
    if isinstance(error, FileNotFoundError):
        return Failure(VANISHED, False, 404, True)
    for reason, names in _REASONS.items():
        if any(name in text for name in names):
            return Failure(reason, True)
    first = text.partition("\n")[0]
    network = "HTTP error" in first or "HttpError" in text or "ConnectionReset" in text
    return Failure(first[:_LONGEST] or type(error).__name__, network)


def _code_and_message(body: str) -> tuple[str, str]:
    code = re.search(_FIELD.format("Code"), body)
    message = re.search(_FIELD.format("Message"), body)
    if code or message:
        return code[1].strip() if code else "", message[1].strip() if message else ""
    if body.startswith("{"):
        try:
            error = json.loads(body)["error"]
            if isinstance(error, dict):
                return str(error.get("status") or ""), str(error.get("message") or "")
            return "", str(error)
        except (ValueError, KeyError, TypeError):
            return "", ""
    return "", "" if "<" in body else " ".join(body.split())


def _words(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "the store refused"


# ------------------------------------------------------------------ requests


# A record of each request to a store or a catalog in the log ``icesql`` at level DEBUG.


def _masked(record: Any) -> bool:
    """A log filter that masks secrets by their place in the texts of records, and lets all pass."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            redact(each, {}) if isinstance(each, str) else each for each in record.args
        )
    return True


_LOGS: Final = ("urllib3.connectionpool", "urllib3.util.retry", "botocore.auth")


def proxy_of(url: str) -> str | None:
    """The proxy that the environment sets for the server of a URL."""
    from urllib.request import getproxies, proxy_bypass

    host = re.sub(r"^\w+://([^/@]*@)?", "", url).partition("/")[0]
    return None if proxy_bypass(host) else getproxies().get(url.partition(":")[0])


def connections(proxy: str | None, **options: Any) -> urllib3.PoolManager:
    """A pool of connections; an option without a value has urllib3's default.

    Logs of clients show no signatures and tokens of addresses from then on.
    """
    import logging

    import urllib3

    for name in _LOGS:
        logging.getLogger(name).addFilter(_masked)  # the same one is added once
    given = {name: value for name, value in options.items() if value is not None}
    return urllib3.ProxyManager(proxy, **given) if proxy else urllib3.PoolManager(**given)


def log_request(
    method: str, url: str, begun: float, size: int, outcome: object, secrets: Mapping[str, Any]
) -> None:
    """Log one line: method, URL, outcome, the bytes received, and ms since ``begun``.

    ``begun`` is of ``time.perf_counter``; ``secrets`` are properties whose secrets are masked, as
    are signatures in the URL. It does not import ``logging``: if the program has not, there are no
    handlers.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("icesql")
    if not logger.isEnabledFor(logging.DEBUG):
        return
    took = (time.perf_counter() - begun) * 1000
    where, result = redact(url, secrets), redact(str(outcome), secrets)
    logger.debug("%s %s: %s · %d B · %.1f ms", method, where, result, size, took)


T = TypeVar("T")

# 0.1, 0.2, … 5 s: a store that is unreachable for a quarter of a minute fails no query.
_MOST_ATTEMPTS: Final = 9
# A store that never responded is more likely to be a wrong endpoint.
_FIRST_ATTEMPTS: Final = 3
# Requests as they are logged, and what one has to be allowed.
_ACTIONS: Final = {"GET": "s3:GetObject", "HEAD": "s3:GetObject", "LIST": "s3:ListBucket"}
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
# The budget of retries per bucket, and the addition to it by each response.
_BUDGET, _BUDGET_PER_ANSWER = 100.0, 0.5


class Body(NamedTuple):
    """Bytes of an object, and how many the whole object has."""

    data: memoryview
    size: int


class Received(NamedTuple):
    """Bytes as received: the length of the object, and where they begin and end in it."""

    data: memoryview
    size: int
    first: int
    last: int


# Connections are worth keeping: a table is loaded anew for each statement.
_MOST_CLIENTS: Final = 32
_clients: Final = BoundedCache(_MOST_CLIENTS)
_making: Final = threading.Lock()  # of a client by one thread
_OF_STORES: Final = ("s3.", "client.", "gcs.", "adls.")


def shared_client(scheme: str, authority: str, properties: Mapping[str, str]) -> StoreClient | None:
    """The client of this process for a bucket with these properties; None where obstore has none.

    Raises NotSupportedError, and obstore's errors for wrong properties.
    """
    own = {name: str(value) for name, value in properties.items() if name.startswith(_OF_STORES)}
    key = os.getpid(), scheme, authority, tuple(sorted(own.items()))
    with _making:
        client: StoreClient | None = _clients.get(key)
        if client is None and (store := make_store(scheme, authority, own)) is not None:
            client = StoreClient(store, own)
            _clients.put(key, client, 1)
        return client


class StoreFailed(Exception):
    """One failed attempt, and its failure."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class StoreClient:
    """The objects of one bucket or container by key; safe for threads.

    Every failure is a StorageError that names the URI, without secrets. ``left`` ends the wait
    between two attempts of an abandoned request.
    """

    def __init__(self, store: Any, properties: Mapping[str, str]) -> None:
        self._store, self._properties = store, properties
        self._process = os.getpid()
        self._has_answered = False
        self._budget = _BUDGET
        self._lock = threading.Lock()

    @property
    def is_usable(self) -> bool:
        """False in a fork of the process, which does not have the client's threads."""
        return os.getpid() == self._process

    def get(
        self,
        uri: str,
        start: int = 0,
        end: int | None = None,
        *,
        most: int | None = None,
        left: threading.Event | None = None,
    ) -> Body:
        """Bytes ``start`` to ``end`` (exclusive) in one GET; the whole object without an ``end``.

        Fewer bytes only at the end of the object. Raises ScanLimitError, before the body is read,
        for an object of more than ``most`` bytes.
        """
        key = _key(uri)

        def attempt() -> Body:
            check = partial(check_size, uri, most=most)
            data, size, first, last = self._get(key, start, end, check)
            expected = (size if end is None else min(end, size)) - start
            if (first, last - first, len(data)) != (start, expected, expected):
                reason = f"the store sent {len(data)} bytes where {expected} were requested"
                raise StoreFailed(Failure(reason, True))
            return Body(data, size)

        return self._tried(uri, "GET", attempt, left)

    def exists(self, uri: str) -> bool:
        """Whether there is an object or folder ``uri``."""
        return self._size(uri) is not None or self._listed(uri)[1]

    def size(self, uri: str) -> int:
        """The length of an object."""
        found = self._size(uri)
        if found is None:
            raise StorageError(uri, VANISHED)
        return found

    def _size(self, uri: str) -> int | None:
        try:
            return self._tried(uri, "HEAD", lambda: self._head(_key(uri)), None)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError) and "NoSuchBucket" not in str(error):
                return None
            raise

    def list_folder(self, uri: str) -> list[str]:
        """Names of the objects directly in a folder, sorted."""
        return self._listed(uri)[0]

    def _listed(self, uri: str) -> tuple[list[str], bool]:
        """Names of the objects directly in a folder, and whether there is anything below it."""
        key = _key(uri).rstrip("/")
        return self._tried(uri, "LIST", lambda: self._listing(f"{key}/" if key else ""), None)

    # ------------------------------------------------------------------ one request

    def _get(self, key: str, start: int, end: int | None, check: Callable[[int], None]) -> Received:
        import obstore

        ranged: Any = {}
        if end is not None:
            ranged["range"] = (start, end)
        elif start:
            ranged["range"] = {"offset": start}
        found = obstore.get(self._store, key, options=ranged or None)
        size = int(found.meta["size"])
        check(size)
        first, last = found.range
        return Received(memoryview(found.bytes()), size, first, last)

    def _head(self, key: str) -> int:
        import obstore

        try:
            return int(obstore.head(self._store, key)["size"])
        except FileNotFoundError:
            raise
        except Exception:  # of any kind: the GET says what is wrong, in its own exception
            # A refused HEAD has no body that could say why.
            return int(obstore.get(self._store, key, options={"range": (0, 1)}).meta["size"])

    def _listing(self, prefix: str) -> tuple[list[str], bool]:
        import obstore

        found = obstore.list_with_delimiter(self._store, prefix or None)
        names = [each["path"].rpartition("/")[2] for each in found["objects"]]
        return sorted(names), bool(names or found["common_prefixes"])

    # ------------------------------------------------------------------ attempts

    def _tried(
        self, uri: str, action: str, attempt: Callable[[], T], left: threading.Event | None
    ) -> T:
        attempts, wait = 0, _FIRST_WAIT
        while True:
            attempts += 1
            begun = time.perf_counter()
            try:
                found = attempt()
            except Error:
                raise
            except Exception as error:  # obstore's own, and Python's where it has one
                needed = _ACTIONS[action] if uri.startswith("s3") else ""
                failure = (
                    error.failure if isinstance(error, StoreFailed) else failure_of(error, needed)
                )
                log_request(action, uri, begun, 0, failure.reason, self._properties)
                if not self._may_try_again(failure, attempts, left):
                    self._raise(uri, failure, attempts, error)
            else:
                size = len(found.data) if isinstance(found, Body) else 0
                log_request(action, uri, begun, size, "answered", self._properties)
                with self._lock:
                    self._has_answered = True
                    self._budget = min(self._budget + _BUDGET_PER_ANSWER, _BUDGET)
                return found
            delay = wait * random.uniform(0.5, 1.0)
            wait = min(2 * wait, _LONGEST_WAIT)
            (left or threading.Event()).wait(delay)

    def _may_try_again(self, failure: Failure, attempts: int, left: threading.Event | None) -> bool:
        if not failure.again or (left is not None and left.is_set()):
            return False
        with self._lock:
            if failure.status is not None:
                self._has_answered = True
            most = _MOST_ATTEMPTS if self._has_answered else _FIRST_ATTEMPTS
            if attempts >= most or self._budget < 1:
                return False
            self._budget -= 1
            return True

    def _raise(self, uri: str, failure: Failure, attempts: int, error: Exception) -> None:
        problem = redact(failure.text(attempts), self._properties)
        with without_secrets(self._properties):
            kind = RefusedError if failure.is_refusal else StorageError
            raise kind(uri, problem) from error


def _key(uri: str) -> str:
    return split_path(uri)[2].removeprefix("/")
