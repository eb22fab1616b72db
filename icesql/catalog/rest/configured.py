"""The configuration of a REST catalog: the server's answer merged with the user's properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from icesql.catalog.properties import names_code
from icesql.catalog.rest.origins import check_addresses
from icesql.errors import CatalogError

# How this machine proves itself is not for a server to say.
_OWN: Final = frozenset(
    {"auth", "ssl", "ssl.cabundle", "client.profile-name", "s3.profile-name", "type"}
)


class Configured(Struct, frozen=True):
    """The properties in force and the endpoints that the server lists, None when it lists none.

    ``is_idempotent``: a request that is sent again with its key is not done again.
    """

    properties: Mapping[str, Any]
    endpoints: frozenset[str] | None = None
    is_idempotent: bool = False

    def has(self, endpoint: str) -> bool | None:
        """Whether the server has "METHOD /v1/…"; None when it does not say."""
        return None if self.endpoints is None else endpoint in self.endpoints


def configured(name: str, given: Mapping[str, Any], answer: Any) -> Configured:
    """The server's defaults, the user's properties on them, the server's overrides on both.

    Raises CatalogError for an answer of another shape, and for one that would send the user's
    credentials to another server.
    """
    if not isinstance(answer, dict):
        raise CatalogError(f"catalog {name}: invalid response: expected an object of configuration")
    merged = {**_texts(answer.get("defaults")), **given, **_texts(answer.get("overrides"))}
    check_addresses(name, given, merged)
    listed = answer.get("endpoints")
    endpoints = frozenset(map(str, listed)) if isinstance(listed, list) and listed else None
    return Configured(merged, endpoints, bool(answer.get("idempotency-key-lifetime")))


def _texts(values: Any) -> dict[str, str]:
    """Properties of a configuration; what is no text is spelled as one."""
    if not isinstance(values, dict):
        return {}
    return {
        str(key): str(value)
        for key, value in values.items()
        if value is not None and key not in _OWN and not names_code(str(key))
    }
