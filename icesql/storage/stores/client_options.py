"""Options of the clients of all stores: time limits, one attempt, and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 30.0
# Retries are ours: they are counted, have a budget and end when a query does.
ONE_TRY: Final = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}


def first(properties: Mapping[str, str], *names: str) -> str | None:
    """The first of some properties that has a value."""
    return next((properties[name] for name in names if properties.get(name)), None)


def flag(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is switched on."""
    return str(properties.get(name, "")).lower() in ("true", "1")


def is_signed_elsewhere(properties: Mapping[str, str]) -> bool:
    """Whether the catalog is to sign the requests: it says so, and no keys are given."""
    if first(properties, "s3.access-key-id", "client.access-key-id") is not None:
        return False
    wanted = str(properties.get("s3.signer") or "")
    return flag(properties, "s3.remote-signing-enabled") or wanted == "S3V4RestSigner"


def client_options(properties: Mapping[str, str], endpoint: str | None) -> dict[str, Any]:
    """Of obstore's HTTP client; ``endpoint`` None is the store's own, by https."""
    connect = float(properties.get("s3.connect-timeout") or CONNECT_SECONDS)
    request = float(properties.get("s3.request-timeout") or REQUEST_SECONDS)
    options: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=connect),
        "timeout": timedelta(seconds=request),
        "pool_idle_timeout": timedelta(seconds=60),
        "user_agent": "icesql",
    }
    if endpoint is not None and endpoint.startswith("http://"):
        options["allow_http"] = True
    if proxy := properties.get("s3.proxy-uri"):
        options["proxy_url"] = proxy
    return options


def fixed(**credential: str | None) -> Callable[[], dict[str, Any]]:
    """A provider of one credential that does not expire."""
    return lambda: {**credential, "expires_at": None}
