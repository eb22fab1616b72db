"""Requests to a REST catalog, its answers, and the protocol of a client that sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from icesql.errors import CatalogError, UnsupportedTableError

_SHOWN: Final = 200


class Refusal(CatalogError):
    """An answer of a catalog that is no success; ``kind`` is the server's name for it."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.kind)


class NoAnswer(CatalogError):
    """No answer came; ``was_sent`` is False where the request cannot have reached the catalog."""

    def __init__(self, message: str, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.was_sent)


# Fields of the specification, and of what catalogs have beside it, that say what may be read:
# read-restrictions, row filters, column masks, projections and policies.
_RESTRICTING: Final = re.compile(r"restrict|filter|mask|polic|projection|redact|(row|column)-level")
_NOTHING: Final[tuple[Any, ...]] = (None, False, "", [], {})


def check_unrestricted(body: bytes, table: str) -> None:
    """Raise UnsupportedTableError where an answer about a table restricts what may be read of it.

    A client must apply such a restriction or not read at all. What an answer does not say, or
    says with an empty value, restricts nothing; of a field that is not known its name is enough.
    """
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        found = {
            name: msgspec.json.decode(value)
            for name, value in fields.items()
            if _RESTRICTING.search(name.lower().replace("_", "-"))
        }
    except (msgspec.DecodeError, RecursionError):
        return  # what it is not, its own reader says
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
    """Whether a restriction says something: a filter that is always true leaves all rows, and an
    empty list of the columns that may be read leaves none."""
    if key == "required-row-filter":
        return value not in (None, True, {"type": "true"})
    return value not in _NOTHING or (value == [] and key == "required-column-projections")


class Request(Struct, frozen=True):
    """One request without its authentication headers; ``body`` None is no body."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Answer(Struct, frozen=True):
    """An answer of any status; ``body`` is empty for 204 and 304."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Sender(Protocol):
    """The part of a client that the proofs of ``auth`` use."""

    name: str

    def send(self, request: Request) -> Answer:
        """One request as it is."""

    def refusal(self, answer: Answer) -> Refusal:
        """The error that an answer stands for."""

    def decoded(self, body: bytes, kind: Any) -> Any:
        """A body as JSON of a type."""
