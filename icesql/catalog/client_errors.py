"""Errors of catalog clients in icesql's words: short, with the true cause, without secrets.

PyIceberg's exceptions have no common base, nor have those of requests, SQLAlchemy, boto3, thrift
and Google's client. They are recognised by class name, so that no client has to be imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from icesql.errors import CatalogError, CorruptFileError, Error, MissingExtraError
from icesql.storage.credentials import redact

_CLIENTS: Final = (
    "pyiceberg", "pydantic_core", "requests", "urllib3", "sqlalchemy", "botocore", "boto3",
    "google", "thrift", "hive_metastore", "psycopg2", "psycopg", "tenacity", "fsspec",
)  # fmt: skip

# The missing module → the extra that installs it. Modules that several kinds of catalog need are
# resolved by the kind.
_EXTRAS: Final = {
    "thrift": "hive",
    "hive_metastore": "hive",
    "puresasl": "hive-kerberos",
    "kerberos": "hive-kerberos",
    "psycopg": "sql-postgres",
    "psycopg2": "sql-postgres",
    "google.cloud": "bigquery",
    "google.auth": "gcp-auth",
    "azure.identity": "entra-auth",
    "s3fs": "s3fs",
    "gcsfs": "gcsfs",
    "adlfs": "adlfs",
    "huggingface_hub": "hf",
}
_BOTO_KINDS: Final = {"glue": "glue", "dynamodb": "dynamodb", "rest": "rest-sigv4"}
# If PyIceberg itself is missing: the extra by kind of catalog or of REST authentication manager.
_KINDS: Final = {
    "glue": "glue", "dynamodb": "dynamodb", "hive": "hive", "bigquery": "bigquery",
    "google": "gcp-auth", "entra": "entra-auth",
}  # fmt: skip

# Errors of a REST catalog → the status to report, and advice for the user.
_REFUSALS: Final = {
    "UnauthorizedError": ("401 Unauthorized", "check its token or credential"),
    "OAuthError": ("the token request was refused", "check its credential"),
    "ForbiddenError": ("403 Forbidden", "these credentials may not do that"),
    "AuthorizationExpiredError": ("419", "the token has expired"),
    "TooManyRequestsError": ("429 Too Many Requests", "try again later"),
    "ServiceUnavailableError": ("503 Service Unavailable", "try again later"),
    "ServerError": ("the catalog failed", ""),
    "BadRequestError": ("400 Bad Request", ""),
}
_LONGEST: Final = 300


def is_foreign(error: BaseException) -> bool:
    """True for errors of a catalog's client and of the operating system, not for bugs of icesql."""
    module = type(error).__module__.partition(".")[0]
    return module in _CLIENTS or isinstance(error, OSError | ValueError | ImportError)


def is_missing(error: BaseException | None, *kinds: str) -> bool:
    """Whether an error is one of PyIceberg's ``kinds``, such as ``NoSuchTableError``."""
    return error is not None and bool(_names(error) & set(kinds))


def translated(error: BaseException, what: str, properties: Mapping[str, Any]) -> Error:
    """The icesql error to raise for a client's error; ``what`` is "catalog NAME"."""
    if isinstance(error, ImportError) or "NotInstalledError" in _names(error):
        return _missing_extra(error, what, properties)
    # Redact before truncating: a truncated message could keep half of a secret.
    text = _message(error, redact(str(error), properties), properties)
    if "pydantic" in type(error).__module__ and "Metadata" in str(getattr(error, "title", "")):
        return CorruptFileError(what, text)
    return CatalogError(f"{what}: {text}")


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _message(error: BaseException, text: str, properties: Mapping[str, Any]) -> str:
    names, module = _names(error), type(error).__module__.partition(".")[0]
    if "pydantic" in module:
        return _malformed(error, properties)
    if "SQLAlchemyError" in names:
        below = getattr(error, "orig", None)
        text = redact(str(below), properties) if below is not None else text
        return _short(text.split("(Background on")[0])
    if module in ("requests", "urllib3") or isinstance(error, ConnectionError | TimeoutError):
        return _unreachable(error, text, properties)
    for name, (status, advice) in _REFUSALS.items():
        if name in names:
            return "; ".join(filter(None, (f"{status}: {_answer(text)}", advice)))
    return _answer(text) or type(error).__name__


def _malformed(error: Any, properties: Mapping[str, Any]) -> str:
    """Why Pydantic rejected a response, without its link and its list of inputs."""
    found = error.errors(include_url=False)[0]
    if found["type"] == "json_invalid":
        start = _short(redact(str(found.get("input", "")), properties), 60)
        page = " (an HTML page)" if start.lower().startswith("<") else ""
        uri = properties.get("uri")
        remedy = (
            f"; is {redact(str(uri), properties)} the address of an Iceberg REST catalog?"
            if uri
            else ""
        )
        return f"its answer is not JSON{page}: {start}{remedy}"
    where = ".".join(str(part) for part in found["loc"])
    problem = redact(f"{where}: {found['msg']}", properties)
    return f"invalid response: {_short(problem)}"


def _answer(text: str) -> str:
    """The reason in the text of a REST error; a page of HTML is its title."""
    body = re.search(
        r"(?s)^RESTError (\d+): (?:Could not decode json payload|Received unexpected JSON Payload)"
        r": (.*?)(?:, errors: [^<]*)?$",
        text,
    )
    if body:
        title = re.search(r"(?i)<title>([^<]*+)</title>", body[2])
        plain = title[1] if title else re.sub(r"<[^<>]*+>", " ", body[2])
        text = plain if title else f"status {body[1]}, {plain}"
    return _short(re.sub(r"^(\w+Error): RestError: ", "", text))


def _unreachable(error: BaseException, text: str, properties: Mapping[str, Any]) -> str:
    """The unreachable address and the system's reason, without the connection pool's message."""
    place = properties.get("uri")
    url = getattr(getattr(error, "request", None), "url", None)
    if isinstance(url, str) and "://" in url:
        place = "/".join(url.split("/", 3)[:3])
    for below in _chain(error):
        if isinstance(below, OSError) and below.strerror and below.errno is not None:
            reason = below.strerror
            reason = reason[:1].lower() + reason[1:]
            break
    else:
        name = type(error).__name__
        if "Timeout" in name or isinstance(error, TimeoutError):
            reason = "it did not answer in time"
        elif re.search(r"Connection aborted|RemoteDisconnected|IncompleteRead", text):
            reason = "it closed the connection"
        elif "refused" in text.lower():
            reason = "connection refused"
        elif re.search(r"[Nn]ame or service not known|NameResolution|nodename", text):
            reason = "unknown host"
        else:
            reason = _short(re.sub(r"^\w+Pool\(.*?\): ", "", text))
    return f"cannot reach {redact(str(place), properties)}: {reason}" if place else reason


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its nested errors: causes and, as urllib3 nests them, arguments."""
    waiting, seen = [error], dict[int, BaseException]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen[id(one)] = one
        yield one
        held = (*one.args, getattr(one, "reason", None), one.__cause__, one.__context__)
        waiting += [each for each in held if isinstance(each, BaseException)]


def _missing_extra(
    error: BaseException, what: str, properties: Mapping[str, Any]
) -> MissingExtraError:
    """The error that names the missing package and the extra that installs it."""
    module = next(
        (str(each.name) for each in _chain(error) if isinstance(each, ImportError) and each.name),
        "",
    )
    kind = str(properties.get("type", "rest" if properties.get("uri") else "")).lower()
    extra = next(
        (name for start, name in _EXTRAS.items() if f"{module}.".startswith(f"{start}.")), None
    )
    if module.startswith("boto"):
        extra = _BOTO_KINDS.get(kind, "glue")
    if module.partition(".")[0] == "pyiceberg":
        is_postgres = str(properties.get("uri", "")).startswith("postgres")
        extra = _KINDS.get(kind, "sql-postgres" if is_postgres else "pyiceberg")
    if extra is None:
        named = re.search(r"pyiceberg\[([\w-]+)\]", str(error))
        extra = named[1] if named else None
    if module:
        return MissingExtraError(f"{what}: the package {module} that it needs", extra=extra)
    return MissingExtraError(what, extra=extra, hint=_short(redact(str(error), properties)))


def _short(text: str, most: int = _LONGEST) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
