"""Views of a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from icesql.catalog.rest.answers import Refusal
from icesql.catalog.table import Identifier
from icesql.catalog.view import StoredView
from icesql.iceberg.metadata.view_metadata import parse_view
from icesql.storage.credentials import redact_urls

_LIST: Final = "GET /v1/{prefix}/namespaces/{namespace}/views"
_LOAD: Final = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"


class Asked(Protocol):
    """What is asked of the catalog."""

    @property
    def name(self) -> str:
        """What SQL calls it."""

    def has_endpoint(self, endpoint: str) -> bool | None:
        """Whether the server has "METHOD /v1/…"."""

    def listed_names(self, kind: str, namespace: Sequence[str]) -> Iterator[Identifier]:
        """The identifiers of the "views" directly in a namespace."""

    def request_of(self, kind: str, identifier: Identifier) -> Any:
        """The answer for one of the "views"."""

    def decoded(self, body: bytes, kind: type[Any]) -> Any:
        """An answer as a value."""


class LoadedView(Struct, frozen=True, rename="kebab"):
    """The answer to a request for a view; ``metadata`` is its JSON as sent."""

    metadata: msgspec.Raw
    metadata_location: str | None = None


def list_views(catalog: Asked, namespace: Sequence[str]) -> list[Identifier]:
    """The views directly in a namespace; none of a catalog that has no views."""
    if not namespace or catalog.has_endpoint(_LIST) is False:
        return []
    try:
        return sorted(catalog.listed_names("views", namespace))
    except Refusal as error:
        if error.status in (404, 405, 406, 501):
            return []
        raise


def load_view(catalog: Asked, identifier: Sequence[str]) -> StoredView | None:
    """A view; None without one."""
    wanted = tuple(identifier)
    if len(wanted) < 2 or catalog.has_endpoint(_LOAD) is False:
        return None
    try:
        answer: Any = catalog.request_of("views", wanted)
    except Refusal as error:
        if error.status in (400, 404, 405, 406, 501):
            return None
        raise
    loaded: LoadedView = catalog.decoded(answer.body, LoadedView)
    path = redact_urls(loaded.metadata_location or f"metadata sent for {'.'.join(wanted)}")
    return StoredView(wanted, parse_view(bytes(loaded.metadata), path), catalog.name)
