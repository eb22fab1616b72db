"""Failures of an object store: its own code and message, and whether a retry may help."""

from __future__ import annotations

import json
import re
from typing import Final

from msgspec.structs import replace

from icesql.errors import StorageError
from icesql.frozen import Frozen
from icesql.storage.open import VANISHED

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
