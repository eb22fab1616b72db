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
        return short(text.split("(Background on")[0])
    if module in ("requests", "urllib3") or isinstance(error, ConnectionError | TimeoutError):
        return _unreachable(error, text, properties)
    return short(text) or type(error).__name__


def _malformed(error: Any, properties: Mapping[str, Any]) -> str:
    """Why Pydantic rejected a response, without its link and its list of inputs."""
    found = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in found["loc"])
    problem = redact(f"{where}: {found['msg']}", properties)
    return f"invalid response: {short(problem)}"


def _unreachable(error: BaseException, text: str, properties: Mapping[str, Any]) -> str:
    """The unreachable address and the reason."""
    place = properties.get("uri")
    url = getattr(getattr(error, "request", None), "url", None)
    if isinstance(url, str) and "://" in url:
        place = "/".join(url.split("/", 3)[:3])
    reason = no_answer(error, text)
    return f"cannot reach {redact(str(place), properties)}: {reason}" if place else reason


def no_answer(error: BaseException, text: str) -> str:
    """Why there was no response: the system's reason, not the connection pool's ``text``."""
    reason = next(
        (
            below.strerror
            for below in _chain(error)
            if isinstance(below, OSError) and below.strerror and below.errno is not None
        ),
        None,
    )
    name = type(error).__name__
    if re.search(r"not known|NameResolution|nodename", reason or f"{name} {text}"):
        return "unknown host"
    if reason is not None:
        return reason[:1].lower() + reason[1:]
    if "Timeout" in name:
        return "it did not answer in time"
    if "Protocol" in name or re.search(
        r"Connection aborted|RemoteDisconnected|IncompleteRead", f"{name} {text}"
    ):
        return "it closed the connection"
    if "refused" in text.lower():
        return "connection refused"
    return short(re.sub(r"^\w+Pool\(.*?\): ", "", text))


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
    return MissingExtraError(what, extra=extra, hint=short(redact(str(error), properties)))


def short(text: str, most: int = _LONGEST) -> str:
    """A text in one line of at most ``most`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
