"""What goes to a REST catalog and comes back from it, and who can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from icesql.errors import CatalogError


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


class Request(Struct, frozen=True):
    """One request, as it is sent but for what proves who asks; ``body`` None is none."""

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
    """What the proofs of ``auth`` need of a client."""

    name: str

    def send(self, request: Request) -> Answer:
        """One request as it is."""

    def refusal(self, answer: Answer) -> Refusal:
        """The error that an answer stands for."""

    def decoded(self, body: bytes, kind: Any) -> Any:
        """A body as JSON of a type."""
