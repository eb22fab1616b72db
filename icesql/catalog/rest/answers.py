"""Requests to a REST catalog, its responses, and the interface of a client that sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from icesql.errors import CatalogError, UnsupportedTableError
from icesql.frozen import Frozen

_SHOWN: Final = 200


class Refusal(CatalogError):
    """An error response of a catalog; ``kind`` is the server's name for the error."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class NoAnswer(CatalogError):
    """There was no response; ``was_sent`` is False if the request never reached the catalog."""

    def __init__(self, message: str, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


# Names of fields, of the specification and of catalogs' extensions, that restrict reading:
# read-restrictions, row filters, column masks, projections and policies.
_RESTRICTING: Final = re.compile(r"restrict|filter|mask|polic|projection|redact|(row|column)-level")
_NOTHING: Final[tuple[Any, ...]] = (None, False, "", [], {})


def check_unrestricted(body: bytes, table: str) -> None:
    """Raise UnsupportedTableError if a response about a table restricts the reading of its rows.

    A client must apply such a restriction or not read at all. Missing fields and empty values
    restrict nothing. An unknown field counts as a restriction if its name looks like one.
    """
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        found = {
            name: msgspec.json.decode(value)
            for name, value in fields.items()
            if _RESTRICTING.search(name.lower().replace("_", "-"))
        }
    except (msgspec.DecodeError, RecursionError):
        return  # the decoder of the response reports malformed JSON
    names = []
    for name, value in found.items():
        inner = value if isinstance(value, dict) else {"": value}
        names += [".".join(filter(None, (name, key))) for key in inner if _holds(key, inner[key])]
    if names:
        shown = ", ".join(names)[:_SHOWN]
        raise UnsupportedTableError(
            f"read restrictions of the catalog ({shown}), which icesql does not apply", table=table
        )


def _holds(key: str, value: Any) -> bool:
    """True if a restriction has an effect.

    A filter that is always true restricts nothing; an empty list of required projections leaves no
    column.
    """
    if key == "required-row-filter":
        return value not in (None, True, {"type": "true"})
    return value not in _NOTHING or (value == [] and key == "required-column-projections")


class Request(Frozen):
    """One request without its authentication headers; ``body`` is None for a request without."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Answer(Frozen):
    """A response of any status; ``body`` is empty for 204 and 304."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Sender(Protocol):
    """The part of a client that the authentication methods of ``auth`` use."""

    name: str

    def send(self, request: Request) -> Answer:
        """Send one request, without retries or authentication."""

    def refusal(self, answer: Answer) -> Refusal:
        """The exception for an error response."""

    def decoded(self, body: bytes, kind: Any) -> Any:
        """Decode a JSON body as a type."""
